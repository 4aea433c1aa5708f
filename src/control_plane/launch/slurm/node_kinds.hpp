// Groups the nodes that Slurm's power saving switches on and off into kinds of machines.
//
// Threads: pure functions. Errors: none, except of check_node_kinds().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// A kind of node, from the config.
struct SlurmNodeKind {
  std::string name;        // "c5.4xlarge", as a compute environment's instanceTypes have it
  std::string feature;     // its nodes have it in slurm.conf
  uint32_t nodes_max = 0;  // of them on at once; 0: all
};

enum class NodePower {
  on,
  off,      // can be powered up
  coming,   // powers up, or will
  leaving,  // powers down, or will
  failed,   // is off and cannot be powered up; SlurmNode::reason says why
};
NodePower power_of(const SlurmNode& node);

// Returns the first kind whose feature the node has; nullptr: none.
const SlurmNodeKind* kind_of_node(const std::vector<SlurmNodeKind>& kinds, const SlurmNode& node);

// Describes the nodes of the kind that are down or drained: "n2: ResumeTimeout reached"; "": none.
std::string failed_nodes(const std::vector<SlurmNodeKind>& kinds, const SlurmNodeKind& kind,
                         const std::vector<SlurmNode>& nodes);

// Checks that each kind has nodes. Errors: invalid.
Result<void> check_node_kinds(const std::vector<SlurmNodeKind>& kinds,
                              const std::vector<SlurmNode>& nodes);

}  // namespace trainyard::launch
