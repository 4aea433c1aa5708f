// JobComment describes the gang of a Slurm job, in the job's comment, which Slurm stores and shows
// to all users. It is all that a server needs to find the gang's agents again.
//
//   trainyard/1 3fa91c j17a1 hosts=2 net=10.201.0.0/28 cpus=4 mem=2048 gpus=0 by=ana
//       seal=AbC+/= ended=1:137 why=n2: task 0: Killed
//
// `cpus`, `mem` (MiB) and `gpus` are of each node. A heterogeneous job has one number for each of
// its components: `cpus=8,2`.
//
// The seal is the attempt's token, encrypted with the server's key. A job whose seal this server
// cannot decrypt belongs to another server, even if the mark is the same. Owners of jobs may change
// comments, and everybody can copy them: in jobs of accounts other than the server's, the seal
// covers the account and all that stands before it (seal_context()). The job's script appends
// `ended` when a host's step failed, with host and exit code, and `why` with the last output.
//
// `reuse` is present in a job that may serve another attempt after this one (allocations.hpp).
//
// `by` names the user or role that created the job, unless its name has other characters than
// IAM's.
//
// Threads: pure. Errors: corrupt.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"
#include "launch/slurm/slurm.hpp"
#include "networks/subnet.hpp"

namespace trainyard::launch {

struct JobComment {
  std::string mark;  // of the server, derived from its key
  domain::AttemptId attempt;
  uint32_t hosts = 0;
  networks::Subnet subnet;
  std::vector<NodeAmounts> amounts;  // needed of each node, by component
  std::string seal;
  // allocation_kind(), if the job may serve further attempts after this one; "": it does not
  std::string kind = {};
  std::string submitter = {};  // the user or role that created the job, for people and sacct
  std::map<domain::HostIndex, int> ended = {};  // host -> exit code
  std::string why = {};
};

// Returns what the token of a gang's job is sealed with: the attempt, and for a job of another
// account than the server's (`user` is not "") also that account, and what the comment says.
std::string seal_context(const JobComment& comment, std::string_view user);

// Returns the submitter's name as comments have it: "" if it has other characters than IAM's.
std::string submitter_in_comment(std::string_view submitter);

// Returns true if the comment is one of Trainyard's, of any version.
bool is_job_comment(std::string_view comment);
// Formats the comment without `ended` and `why`, which the script appends.
std::string to_text(const JobComment& comment);
Result<JobComment> read_job_comment(std::string_view comment);

}  // namespace trainyard::launch
