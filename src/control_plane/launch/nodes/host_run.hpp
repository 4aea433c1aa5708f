// Runs one host of a gang on a node of a cluster: makes the host's network, runs its agent, and
// removes everything again. trainyard-slurm-host is this function as a program; the job's script
// starts it in a step of Slurm's on each host's node. A pod of Kubernetes' is a node of its own:
// trainyard-pod-host prepares the host there and becomes the agent, and what it made ends with the
// pod.
//
// Below NODE_DIRECTORY/NODENAME lies what is in a server's data directory (local/local.hpp):
//
//   attempts/ATTEMPT/launch.json   the part of the gang's network on this node
//   attempts/ATTEMPT/HOST/         the agent's directory; its `runner` is locked while it lives
//   images/                        unpacked images, shared by all jobs of the node
//
// The first host of a gang on a node makes the network, the last one removes it. What a killed
// runner left is removed by the next one on the node.
//
// On SIGTERM (scancel, the job's time limit, a reclaimed node) Slurm signals the agent as well,
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
  std::string name;               // SLURMD_NODENAME, or that of the pod
  std::string job_number;         // that is the gang's among those of its cluster: SLURM_JOB_ID
  std::string gpus;               // SLURM_STEP_GPUS or SLURM_JOB_GPUS: "0,1"
  std::string program_directory;  // of trainyard-agent
  // So often, once a second, the names of the gang's other nodes are looked up until they are
  // known.
  uint32_t lookups_max = 1;
  // For an allocation that serves one host after another: the elapsed part of its time limit.
  Duration passed{};
  // True once Slurm has signalled the end: no further agent is started.
  std::function<bool()> is_ending = [] { return false; };
};

// Makes the host's network and files, and returns the agent's command. Requires: nothing else of
// the gang is on this node, and what is made here ends with the node, also on error.
Result<os::Command> prepare_host(const HostOrder& order, const NodeFacts& node,
                                 const LocalParts& parts);

// Runs the host, and after it those that its allocation serves next: each with a network namespace,
// an agent and files of its own, after the previous one's agent and container were removed. The
// bridge and the firewall stay where they would be made alike. Returns the last agent's exit code.
Result<int> run_host(const HostOrder& first, const NodeFacts& node, const LocalParts& parts,
                     Clock& clock);

// Removes what killed runners left on this node; harmless while others run. For the node's boot, or
// an epilog of Slurm's.
Result<void> clean_node(const std::string& node_directory, const std::string& node_name,
                        const LocalParts& parts);

// The device files of Slurm's list of GPUs: "0,2-3" is /dev/nvidia0, 2 and 3. Errors: invalid.
Result<std::vector<std::string>> gpu_device_files(std::string_view indexes);

}  // namespace trainyard::launch
