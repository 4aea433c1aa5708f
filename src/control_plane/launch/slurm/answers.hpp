// Parses the output of Slurm's programs: squeue, scontrol, sbatch and sacct.
//
// Threads: pure functions. Errors: corrupt (unexpected text; the message shows the line), exhausted
// (past kSlurmJobsMax or kSlurmNodesMax).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// Returns squeue's option --Format for read_jobs(); the marker follows the id in each line. Name
// and comment come last, since a user may put the separator into them.
std::string jobs_format(std::string_view marker);
// Reads the output of squeue, without array tasks ("17_3") and jobs that lack our comment.
//
// `marker`: random bytes of this call, the second field of each line. Lines without it are ignored:
// the name or comment of another user's job may contain line breaks and imitate other jobs.
// `own_user`: the server's account, which becomes "".
Result<std::vector<SlurmJob>> read_jobs(std::string_view squeue, std::string_view marker,
                                        std::string_view own_user);

// The columns of sacct for read_ended(); no user can write to them.
inline constexpr const char* kEndedFormat = "JobIDRaw,User,State,ExitCode";
// Reads `sacct --parsable2 --allocations`: jobs that have ended.
Result<std::vector<SlurmJob>> read_ended(std::string_view sacct, std::string_view own_user);

// Reads `scontrol --oneliner show nodes`.
Result<std::vector<SlurmNode>> read_nodes(std::string_view scontrol);

// Reads sbatch --parsable: "17" or "17;cluster".
Result<uint64_t> read_submitted(std::string_view sbatch);

// Expands "n[1-3,07],login" to n1, n2, n3, n07, login. Errors also: exhausted, past kSlurmNodesMax
// names.
Result<std::vector<std::string>> expand_host_list(std::string_view list);

// Joins names with commas: "n1,n2,n3".
std::string join_names(const std::vector<std::string>& names);

// Returns the number of GPUs in a GRES list: "gpu:t4:4(S:0),gpu:1,nic:2" has 5. Invalid parts count
// as 0.
int64_t gpus_of_gres(std::string_view gres);

// Tells errors of one kind apart.
enum class SlurmFault { job_has_ended };  // the request concerns a job that has ended or is unknown

// Returns the message of a program that failed: its last line, without "sbatch: error: ".
std::string slurm_message(std::string_view errors);
// Classifies a failure of one of Slurm's programs by its message, since their exit code is
// always 1. Errors also: not_found, for sacct without an accounting storage.
Error error_of_slurm(std::string_view errors);
// Classifies the message about a failed request: unavailable, if slurmctld did not answer;
// exhausted, if it rejects the request for the current state of nodes; else invalid.
Error error_of_rejection(std::string_view message);

}  // namespace trainyard::launch
