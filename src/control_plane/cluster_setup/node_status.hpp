// Reads what Slurm says about the nodes of the cluster.
//
// Threads: pure functions. Errors: corrupt, naming the line; exhausted, past a limit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::cluster_setup {

struct NodeStatus {
  std::string name;
  std::string state;  // "idle", "mixed", "drained*"
  int64_t cpus = 0, memory_mib = 0, gpus = 0;
  std::string version;  // slurmd's; "" = unknown
  std::string reason;   // why the node gets no jobs; "" = none
  bool operator==(const NodeStatus&) const = default;
};

// Reads the output of status_script().
Result<std::vector<NodeStatus>> read_node_status(std::string_view output);

}  // namespace trainyard::cluster_setup
