// Plans the Slurm job of a gang: the options of sbatch, and the script that starts one agent for
// each host on the node that the scheduler chose.
//
// The script runs on the gang's first node. For each host it starts a step (srun) of the program
// trainyard-slurm-host on the host's node, with the host's order as standard input. So orders reach
// other nodes through Slurm, and appear neither in arguments nor in files. The script writes a step
// that fails into the job's comment.
//
// A job of a Unix account other than the server's (unix_users.hpp) has one step for each node,
// which runs all hosts there in one rootless sandbox (nodes/user_hosts.hpp), and prints which
// ended. Its nodes are joined by encrypted datagrams in the place of VXLAN
// (networks/datagram_relay.hpp).
//
// Threads: pure. Errors: invalid (the gang), denied (nodes that cannot serve it), unavailable
// (nodes that Slurm does not list, or that are too small), exhausted (subnets).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "launch/launcher.hpp"
#include "launch/nodes/host_plan.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// The settings of all jobs, and those by queue, instance type and user.
struct SlurmJobSettings : NodeSettings {
  std::string program_directory;  // of trainyard-slurm-host and trainyard-agent, on each node
  SlurmPlacement placement;
  // Set members replace those of `placement`; an instance type's replace a queue's.
  std::map<std::string, SlurmPlacement> of_queues, of_instance_types;
  // For jobs by the user or role that created them, or "*" for all others. They take precedence
  // over those of an instance type.
  std::map<std::string, SlurmPlacement> of_users;
  bool require_user = false;  // reject jobs of users that are not in of_users
  // The accounts for which jobs run, by the user or role that created them, or "*"; empty: all run
  // for the server's own account. Jobs of users that are not in it are rejected.
  std::map<std::string, UnixUser> unix_users;
  // node_directory of those accounts: "-" and the account's number are appended.
  std::string user_directory = "/var/tmp/trainyard-node";
  // The UDP ports of nodes at which their hosts take encrypted datagrams from other nodes: an
  // account has no right to join its nodes by VXLAN.
  uint16_t first_port = 20'000, last_port = 29'999;
  // Added to a job's limit of run time: for images, inputs and artifacts.
  Duration time_margin = 30min;
  // The time that the job of an array's child waits for another child; 0: it does not.
  Duration idle_max = 5s;
};

// Returns the partitions of all jobs, except for the settings of of_users; empty: Slurm's default.
std::vector<std::string> partitions_of(const SlurmJobSettings& settings);

// Errors: invalid, if the gang's submitter must be in of_users and is not.
Result<SlurmPlacement> placement_of(const SlurmJobSettings& settings, const Gang& gang);

// Returns the owner of the gang's job in Slurm; without a name: the server's own account. Errors:
// invalid, if the gang's submitter has no account.
Result<UnixUser> unix_user_of(const SlurmJobSettings& settings, const Gang& gang);

// Returns "trainyard-3fa91c-j17a1". Slurm starts only one job of a name at a time.
std::string job_name(const std::string& mark, const domain::AttemptId& attempt);

// Returns true if the gang's Slurm job may run another attempt afterwards.
bool may_serve_others(const SlurmJobSettings& settings, const Gang& gang);

// Returns the time that an allocation must have left to run the gang. Half of the margin suffices
// for the images, inputs and artifacts of a further attempt.
Duration time_needed(const SlurmJobSettings& settings, const Gang& gang);

// The allocation in which a host follows others.
struct NextInAllocation {
  networks::Subnet subnet;  // the allocation's
  uint32_t served = 0;      // attempts that ran in the allocation before it
};

// Returns the message that starts the next host in an allocation, for the program on its node.
// Requires: may_serve_others(). Errors: unavailable, as plan_job().
Result<std::string> plan_next_host(const SlurmJobSettings& settings, const Gang& gang,
                                   const std::vector<SlurmNode>& nodes,
                                   const NextInAllocation& next);

// Returns the allocation_kind() of the gang's job. Requires, errors: as plan_next_host().
Result<std::string> kind_of(const SlurmJobSettings& settings, const Gang& gang,
                            const std::vector<SlurmNode>& nodes);

// Finds a subnet for the gang, at or after `start`. Errors: those of choose_subnet().
Result<networks::Subnet> choose_gang_subnet(const SlurmJobSettings& settings, const Gang& gang,
                                            const std::vector<networks::Subnet>& taken,
                                            networks::Address start);

// Encrypts the gang's token together with a seal_context().
using SealToken = std::function<std::string(const std::string& context)>;

// `nodes`: as Slurm lists them. Requires: the subnet is one of choose_gang_subnet().
Result<SlurmJobRequest> plan_job(const SlurmJobSettings& settings, const Gang& gang,
                                 const std::vector<SlurmNode>& nodes,
                                 const networks::Subnet& subnet, const SealToken& seal);

}  // namespace trainyard::launch
