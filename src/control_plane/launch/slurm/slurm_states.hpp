// Interprets Slurm's states of jobs and nodes: tells which jobs may run, and which parts of nodes
// can be used.
//
// Threads: pure functions, except for check_users(). Errors: none, except of check_partitions() and
// check_users().
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/launcher.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// Returns true if the job has ended. A job in an unknown state, as of a newer release of Slurm,
// counts as not ended, since its agents may run.
bool has_ended(const SlurmJob& job);
// Returns true if the job has not ended and is not completing: Slurm runs its processes, or may
// still start them.
bool is_uncancelled(const SlurmJob& job);
// Returns true if agents of the job may run now or later. Agents of a requeued job may not.
bool may_run(const SlurmJob& job);
// Returns true if Slurm ends or has ended the job in favour of another one, or requeued it while
// its nodes can be used.
bool is_preempted(const SlurmJob& job, const std::vector<SlurmNode>& nodes);
// Returns true if the job is ending, and Slurm does not report the reason yet.
bool is_completing(const SlurmJob& job);
// Returns true if a node of the job failed, or Slurm requeued the job.
bool has_lost_a_node(const SlurmJob& job);
// Returns true if the job is pending for nodes: because other jobs have them, they are down, or a
// limit is reached. Returns false if Slurm has not tried to start it yet, or if it waits for a
// dependency, its begin time or its user's release.
bool waits_for_nodes(const SlurmJob& job);
// Describes a job in Slurm's terms: "Slurm job 7 is PENDING (Resources)".
std::string describe(const SlurmJob& job);
// Returns Slurm's state and reason of a job and, if it lost a node, the reason of each unusable
// node.
std::string state_note(const SlurmJob& job, const std::vector<SlurmNode>& nodes);
// Returns the last known state of a job while Slurm does not answer. `sent`: as SlurmAnswer's.
// `why`: the reason.
std::string unknown_note(const SlurmJob& job, Instant sent, const std::string& why);

// Returns true if the node responds and is not down, drained, failing, powered off or reserved for
// maintenance.
bool is_usable(const SlurmNode& node);
// Returns true if the node is in one of the partitions, or if `partitions` is empty.
bool is_in(const std::vector<std::string>& partitions, const SlurmNode& node);
// Checks that each partition has a node. Errors: invalid, naming the partition.
Result<void> check_partitions(const std::vector<std::string>& partitions,
                              const std::vector<SlurmNode>& nodes);
// Checks that jobs can be submitted as each Unix user. `users`: by principal. Errors: as
// Slurm::check_user().
Result<void> check_users(Slurm& slurm, const std::map<std::string, UnixUser>& users);
// Returns the parts of nodes that jobs of this server may use. Leaves out nodes that are drained,
// down, outside of the partitions, or allocated by other jobs. `own`: by node, the resources of
// this server's jobs.
std::vector<Machine> machines_of(const std::vector<SlurmNode>& nodes,
                                 const std::vector<std::string>& partitions,
                                 const std::map<std::string, NodeAmounts>& own);

}  // namespace trainyard::launch
