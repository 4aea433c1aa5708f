// Runs one host of a gang on a node of a cluster: makes the host's network, runs its agent, and
// removes everything again. The program trainyard-slurm-host calls run_host(); the job's script
// starts it in a Slurm step on each host's node. In Kubernetes a pod counts as a node:
// trainyard-pod-host prepares the host there and becomes the agent, and everything that it made
// ends with the pod.
//
// The directory NODE_DIRECTORY/NODENAME is like a server's data directory (local/local.hpp):
//
//   attempts/ATTEMPT/launch.json   the part of the gang's network on this node
//   attempts/ATTEMPT/HOST/         the agent's directory; its file `runner` is locked while it runs
//   images/                        unpacked images, shared by all jobs of the node
//
// The first host of a gang on a node makes the network, the last one removes it. The next runner on
// the node removes what a killed runner left.
//
// With SIGTERM (scancel, the job's time limit, a reclaimed node) Slurm also signals the agent,
// which ends the job and cleans up; the runner waits for it.
//
// Threads: one. Errors: denied (no right to make networks; the message says what to allow),
// conflict (the gang's addresses are in use on this node), unavailable, those of files.
#pragma once

#include <functional>
#include <string>

#include "base/result.hpp"
#include "launch/local/local_system.hpp"
#include "launch/nodes/host_order.hpp"
#include "os/process.hpp"

namespace trainyard::launch {

struct NodeFacts {
  std::string name;               // SLURMD_NODENAME, or the name of the pod
  std::string job_number;         // unique to the gang in its cluster: SLURM_JOB_ID
  std::string gpus;               // SLURM_STEP_GPUS or SLURM_JOB_GPUS: "0,1"
  std::string program_directory;  // of trainyard-agent
  // The tries to resolve the names of the gang's other nodes, one per second.
  uint32_t lookups_max = 1;
  // The elapsed time of an allocation that runs one host after another.
  Duration passed{};
  // True once Slurm has signalled the end: no further agent is started.
  std::function<bool()> is_ending = [] { return false; };
};

// Makes the host's network and files, and returns the agent's command. Requires: the node has no
// other host of the gang, and everything that is made ends with the node, also after an error.
Result<os::Command> prepare_host(const HostOrder& order, const NodeFacts& node,
                                 const LocalParts& parts);

// Runs the host, and after it the next hosts of its allocation: each with its own network
// namespace, agent and files, after the agent and container of the previous one were removed.
// Bridge and firewall stay if the next host has the same network. Returns the last agent's exit
// code.
Result<int> run_host(const HostOrder& first, const NodeFacts& node, const LocalParts& parts,
                     Clock& clock);

// Removes what killed runners left on this node, but nothing of running ones. For the node's boot,
// or an epilog of Slurm.
Result<void> clean_node(const std::string& node_directory, const std::string& node_name,
                        const LocalParts& parts);

// Returns the device files of Slurm's list of GPUs: /dev/nvidia0, 2 and 3 for "0,2-3". Errors:
// invalid.
Result<std::vector<std::string>> gpu_device_files(std::string_view indexes);

}  // namespace trainyard::launch
