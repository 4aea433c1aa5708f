// Recognizes this server's jobs among those that Slurm lists, and sums up the resources that they
// use.
//
// A job is this server's if its comment has the mark, and a token that this server has sealed: for
// that attempt and, in a job of another account, for that account, network and size
// (seal_context()). So a job with another's comment, or with a changed one, is not the server's.
//
// Threads: pure functions. Errors: none; a job of others is nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// The prefix of the names of jobs that the server has removed, which did not end by themselves.
inline constexpr const char* kRemovedPrefix = "removed-";

// One of this server's jobs in Slurm.
struct OwnJob {
  SlurmJob job;
  JobComment comment;
  std::string token;  // of the attempt in the comment
};

// Decrypts a token that was sealed with the context.
using UnsealToken =
    std::function<Result<std::string>(const std::string& sealed, const std::string& context)>;

// `known`: the job in the last answer; nullptr if it is new. Its comment is read only if it
// differs.
std::optional<OwnJob> read_own_job(const SlurmJob& job, const OwnJob* known,
                                   const std::string& mark, const UnsealToken& unseal);

// Sums up the resources of these jobs on each node.
std::map<std::string, NodeAmounts> sum_by_node(const std::vector<const OwnJob*>& jobs);

}  // namespace trainyard::launch
