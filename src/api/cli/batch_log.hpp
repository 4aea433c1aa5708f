// Reads the logs of Batch jobs. DescribeJobs names the streams of a job's attempts, of its nodes,
// and of an array's children.
//
// Threads: as LogFollower; log_sources() is a pure function. Errors: the client's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/log_follower.hpp"

namespace trainyard::cli {

// Returns the log streams of all attempts in a job's description by DescribeJobs. `label`: printed
// before each line.
std::vector<LogSource> log_sources(const Json& job_detail, const std::string& label);

// Follows a job of one container, or the nodes of a multi-node parallel job.
std::unique_ptr<LogFollower> follow_batch_job(client::Client& client, const JobView& job,
                                              const LogChoice& choice);
// Follows the children of an array. Requires: job.array.
std::unique_ptr<LogFollower> follow_array(client::Client& client, const JobView& job,
                                          const LogChoice& choice);

}  // namespace trainyard::cli
