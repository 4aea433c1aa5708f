// Reads responses of slurmrestd, in the forms of all versions of its API: numbers as such or as
// objects {"set", "infinite", "number"}, states as texts or lists.
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

// Returns the jobs with a comment of ours, of any user. `own_user`: the token's, which becomes "".
Result<std::vector<SlurmJob>> read_rest_jobs(std::string_view body, std::string_view own_user);
Result<std::vector<SlurmNode>> read_rest_nodes(std::string_view body);
Result<uint64_t> read_rest_submitted(std::string_view body);
// `status`: that of HTTP. Errors also: not_found, for an unknown job.
Result<void> check_rest_answer(int status, std::string_view body);

// Errors: denied (not a JWT, or expired at `now`).
Result<void> check_token(std::string_view token, Instant now);

}  // namespace trainyard::launch
