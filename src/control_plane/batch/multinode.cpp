#include "batch/multinode.hpp"

#include "base/plural.hpp"
#include "base/text.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

uint32_t last_of(const NodeRange& range, uint32_t nodes) { return range.last.value_or(nodes - 1); }

bool lies_within(const NodeRange& inner, const NodeRange& outer, uint32_t nodes) {
  return inner.first >= outer.first && last_of(inner, nodes) <= last_of(outer, nodes);
}

std::string describe_range(const NodeRange& range) {
  return "'" + std::to_string(range.first) + ":" + (range.last ? std::to_string(*range.last) : "") +
         "'";
}

}  // namespace

Result<NodeRange> parse_node_range(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<uint32_t> {
    const auto value = parse_int(digits);
    if (!value || *value < 0 || *value >= int64_t(kNodesMax) ||
        digits.find_first_of("+- ") != digits.npos)
      return {};
    return uint32_t(*value);
  };
  const auto bad = [&] {
    return invalid("targetNodes '" + shorten(text, 60) +
                   "' must be a range of nodes, like 0:3, :3 or 4:, below " +
                   std::to_string(kNodesMax));
  };
  const size_t colon = text.find(':');
  NodeRange range;
  const std::string_view before = text.substr(0, colon);
  if (!before.empty() || colon == std::string_view::npos) {
    const auto first = number(before);
    if (!first) return bad();
    range.first = *first;
  }
  if (colon == std::string_view::npos) {
    range.last = range.first;
    return range;
  }
  if (const std::string_view after = text.substr(colon + 1); !after.empty()) {
    const auto last = number(after);
    if (!last) return bad();
    range.last = *last;
  }
  if (range.last && *range.last < range.first) return bad();
  return range;
}

Result<std::vector<size_t>> nodes_by_range(const std::vector<NodeRange>& ranges, uint32_t nodes) {
  if (nodes < 1 || nodes > kNodesMax)
    return invalid("numNodes must be between 1 and " + std::to_string(kNodesMax));
  for (const NodeRange& range : ranges)
    if (range.first >= nodes || last_of(range, nodes) >= nodes)
      return invalid("targetNodes " + describe_range(range) + " goes beyond the last of " +
                     counted(nodes, "node") + ", which is " + std::to_string(nodes - 1));
  for (size_t a = 0; a < ranges.size(); ++a)
    for (size_t b = a + 1; b < ranges.size(); ++b) {
      const bool meet = ranges[a].first <= last_of(ranges[b], nodes) &&
                        ranges[b].first <= last_of(ranges[a], nodes);
      const bool a_in_b = lies_within(ranges[a], ranges[b], nodes),
                 b_in_a = lies_within(ranges[b], ranges[a], nodes);
      if (meet && (a_in_b == b_in_a))
        return invalid(
            "targetNodes " + describe_range(ranges[a]) + " and " + describe_range(ranges[b]) +
            (a_in_b ? " are the same nodes" : " overlap: one must lie within the other"));
    }
  std::vector<size_t> by_node(nodes);
  for (uint32_t node = 0; node < nodes; ++node) {
    std::optional<size_t> best;
    for (size_t i = 0; i < ranges.size(); ++i)
      if (ranges[i].has(node) && (!best || lies_within(ranges[i], ranges[*best], nodes))) best = i;
    if (!best)
      return invalid("node " + std::to_string(node) + " of " + std::to_string(nodes) +
                     " is in no range of nodeRangeProperties: together they must cover all nodes");
    by_node[node] = *best;
  }
  return by_node;
}

std::string node_id(const std::string& job_id, HostIndex node) {
  return job_id + "#" + std::to_string(node);
}

std::pair<std::string, std::optional<HostIndex>> split_node_id(const std::string& id) {
  const size_t mark = id.rfind('#');
  if (mark == std::string::npos) return {id, {}};
  const auto node = parse_int(std::string_view(id).substr(mark + 1));
  const bool good = node && *node >= 0 && *node < int64_t(kNodesMax);
  return {id.substr(0, mark), good ? HostIndex(*node) : kNodesMax};
}

}  // namespace trainyard::batch
