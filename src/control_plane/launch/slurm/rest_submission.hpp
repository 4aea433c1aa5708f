// Writes the request that submits a job to slurmrestd, in a version of its API.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// The differences of a submission between versions of the API.
struct RestVersion {
  std::string_view name;             // in paths: "v0.0.38"
  std::string_view required_nodes;   // of a submission: the field with the nodes' names
  bool nodes_as_list = false;        // their form; else a text with commas
  bool environment_as_list = false;  // "A=b"; else an object
  std::string_view gres;             // of a submission: GPUs of each node
};
const RestVersion* find_rest_version(std::string_view name);
std::string rest_version_names();  // for messages

// The body of the request.
std::string rest_submission(const RestVersion& version, const SlurmJobRequest& request);

}  // namespace trainyard::launch
