// Runs the hosts of a gang on a node as the ordinary user of their Slurm job, without root's
// rights. The program `trainyard-slurm-host --hosts` calls run_user_hosts(), in one Slurm step for
// each node.
//
//   step (as alice)
//     trainyard-slurm-host --hosts      enters a rootless sandbox of this job
//     ├ trainyard-keep                  keeps its namespaces open while any agent runs
//     ├ trainyard-slurm-host            runs one host (host_run.hpp), as root of the sandbox only
//     │   └ trainyard-agent             the first process of a PID namespace
//     └ trainyard-slurm-host ..         the next host of the gang on this node
//
// The files of a user are in NODE_DIRECTORY-UID/NODENAME, mode 0700: no other user can read tokens,
// orders or images there. Each Slurm job has its own sandbox: Slurm ends all processes of a job,
// including the namespace holder, so no job may depend on another one's.
//
// Threads: one for each host. Errors: denied (it does not run as the user of the orders; the
// directory belongs to another user; this machine permits no user namespaces), invalid, those of
// files.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launch/nodes/host_order.hpp"
#include "launch/nodes/host_run.hpp"

namespace trainyard::launch {

// The end of a host.
struct HostEnd {
  domain::HostIndex host = 0;
  int code = 0;
  std::string why;  // the last message of its program, on one line; "" if the code is 0
};

// Reads orders, one per line. Pure. Errors: invalid (no orders, too many, or of several users).
Result<std::vector<HostOrder>> read_host_orders(std::string_view text);

// Assigns a node's GPUs to its hosts, in their order. Returns Slurm's list of indexes for each
// host: "0,1". Pure. Errors: invalid, if Slurm has given fewer than the hosts have.
Result<std::vector<std::string>> split_gpus(std::string_view indexes,
                                            const std::vector<HostOrder>& orders);

// Runs all hosts to their ends, and calls `tell` for each, on any thread, one at a time. Returns 0,
// or the code of a host that failed. Requires: no other thread runs.
Result<int> run_user_hosts(const std::vector<HostOrder>& orders, const NodeFacts& node,
                           const std::function<void(const HostEnd&)>& tell);

}  // namespace trainyard::launch
