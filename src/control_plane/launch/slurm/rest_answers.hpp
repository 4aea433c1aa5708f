// Writes requests of slurmrestd and reads its answers.
//
// Threads: pure functions. Errors: corrupt (unexpected JSON), exhausted (past kSlurmJobsMax or
// kSlurmNodesMax), and those that slurmrestd reports: unavailable, denied, invalid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// What differs between versions of the API. Readers accept the forms of all: numbers plain or as
// objects {"set", "infinite", "number"}, states as texts or lists.
struct RestVersion {
  std::string_view name;             // in paths: "v0.0.38"
  std::string_view required_nodes;   // of a submission: the field with the nodes' names
  bool nodes_as_list = false;        // their form; else a text with commas
  bool environment_as_list = false;  // "A=b"; else an object
  std::string_view gres;             // of a submission: GPUs of each node
};
const RestVersion* find_rest_version(std::string_view name);
std::string rest_version_names();  // for messages

// Jobs of the Slurm user `user`: others could copy a comment.
Result<std::vector<SlurmJob>> read_rest_jobs(std::string_view body, std::string_view user);
Result<std::vector<SlurmNode>> read_rest_nodes(std::string_view body);
Result<uint64_t> read_rest_submitted(std::string_view body);
// `status`: that of HTTP. Errors also: not_found, for an unknown job.
Result<void> check_rest_answer(int status, std::string_view body);

// Errors: denied (not a JWT, or expired at `now`).
Result<void> check_token(std::string_view token, Instant now);

std::string rest_submission(const RestVersion& version, const SlurmJobRequest& request);

}  // namespace trainyard::launch
