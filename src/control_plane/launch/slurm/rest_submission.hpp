// Writes the request that submits a job to slurmrestd, in a version of its API.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// The differences between versions of the API.
struct RestVersion {
  std::string_view name;            // in paths: "v0.0.38"
  std::string_view required_nodes;  // the field with the nodes' names
  std::string_view gres;            // the field with the GPUs of each node
  std::string_view gres_prefix;     // stands before the type and the number of GPUs
  // The forms of slurmrestd's own parsers, from Slurm 23.02 on: lists are JSON lists, numbers that
  // may be missing are objects {"set", "number"}, and the number of nodes is a text.
  bool data_parser = false;
  bool changes_nodes = false;  // it can power nodes up and down
};
const RestVersion* find_rest_version(std::string_view name);
std::string rest_version_names();  // for messages

// The body of the request.
std::string rest_submission(const RestVersion& version, const SlurmJobRequest& request);

}  // namespace trainyard::launch
