// Tells what Slurm's states of jobs and nodes mean: which jobs may run, and how much of which nodes
// can be used.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/launcher.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// A job in an unknown state, which a newer release of Slurm may have, counts as live: its agents
// may run.
bool has_ended(const SlurmJob& job);
// True if Slurm has not begun to end what the job runs, or will run.
bool is_uncancelled(const SlurmJob& job);
// True if agents of the job may run, or will.
bool may_run(const SlurmJob& job);
bool has_lost_a_node(const SlurmJob& job);
// True if the job is pending because others have its nodes; not if Slurm has not looked at it yet.
bool waits_for_nodes(const SlurmJob& job);
// Describes a job with Slurm's terms: "Slurm job 7 is PENDING (Resources)".
std::string describe(const SlurmJob& job);
// Returns Slurm's state and reason of a job; for a lost node also the node's.
std::string state_note(const SlurmJob& job, const std::vector<SlurmNode>& nodes);

bool is_usable(const SlurmNode& node);
// The part of a node that jobs of this server may use: nothing if it is drained, down, or outside
// the partitions. `own_*`: what this server's jobs have there.
std::vector<Machine> machines_of(const std::vector<SlurmNode>& nodes,
                                 const std::vector<std::string>& partitions,
                                 const std::map<std::string, JobComment>& own);

}  // namespace trainyard::launch
