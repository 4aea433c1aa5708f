#include "launch/slurm/node_kinds.hpp"

#include <algorithm>
#include <initializer_list>

namespace trainyard::launch {
namespace {

constexpr size_t kShownNodes = 3;  // of those that failed, in a message

bool has_any(const SlurmNode& node, std::initializer_list<const char*> states) {
  return std::ranges::any_of(node.states, [&](const std::string& state) {
    return std::ranges::find(states, state) != states.end();
  });
}

// True if an administrator keeps jobs off the node.
bool is_withheld(const SlurmNode& node) {
  return has_any(node, {"DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "MAINT", "FUTURE"});
}

}  // namespace

// A node that did not power up in time is DOWN and POWERED_DOWN; a later request to power it up
// leaves DOWN until it registers.
NodePower power_of(const SlurmNode& node) {
  if (has_any(node, {"POWER_DOWN", "POWER_DRAIN"})) return NodePower::leaving;
  if (has_any(node, {"POWER_UP", "POWERING_UP"}))
    return is_withheld(node) ? NodePower::failed : NodePower::coming;
  if (has_any(node, {"POWERING_DOWN"})) return NodePower::leaving;
  if (!has_any(node, {"POWERED_DOWN"})) return NodePower::on;
  const bool down = has_any(node, {"DOWN", "ERROR", "UNKNOWN", "INVAL"});
  return down || is_withheld(node) ? NodePower::failed : NodePower::off;
}

const SlurmNodeKind* kind_of_node(const std::vector<SlurmNodeKind>& kinds, const SlurmNode& node) {
  const auto found = std::ranges::find_if(kinds, [&](const SlurmNodeKind& kind) {
    return std::ranges::find(node.features, kind.feature) != node.features.end();
  });
  return found == kinds.end() ? nullptr : &*found;
}

std::string failed_nodes(const std::vector<SlurmNodeKind>& kinds, const SlurmNodeKind& kind,
                         const std::vector<SlurmNode>& nodes) {
  std::string text;
  size_t failed = 0;
  for (const SlurmNode& node : nodes) {
    const bool fails = power_of(node) == NodePower::failed ||
                       (power_of(node) == NodePower::on && has_any(node, {"DOWN"}));
    if (!fails || kind_of_node(kinds, node) != &kind) continue;
    if (++failed > kShownNodes) continue;
    text += (text.empty() ? "" : "; ") + node.name + ": " +
            (node.reason.empty() ? node.states.front() : node.reason);
  }
  if (failed > kShownNodes) text += "; and " + std::to_string(failed - kShownNodes) + " more nodes";
  return text;
}

Result<void> check_node_kinds(const std::vector<SlurmNodeKind>& kinds,
                              const std::vector<SlurmNode>& nodes) {
  for (const SlurmNodeKind& kind : kinds)
    if (std::ranges::none_of(
            nodes, [&](const SlurmNode& node) { return kind_of_node(kinds, node) == &kind; }))
      return invalid("Slurm lists no node with the feature '" + kind.feature +
                     "' of slurm.node_kinds.\"" + kind.name +
                     "\": `sinfo -N -o '%N %f'` lists features, and nodes that are powered down "
                     "only with PrivateData=cloud in slurm.conf");
  return {};
}

}  // namespace trainyard::launch
