// Reads the node ranges of multi-node parallel jobs: a gang whose hosts (nodes) may differ by ranges, and whose end is its main node's.
//
// Threads: pure. Errors: invalid, in words for who wrote the ranges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"

namespace trainyard::batch {

inline constexpr uint32_t kNodesMax = 1000;  // of a job, as AWS
inline constexpr size_t kNodeRangesMax = 5;  // of a definition, as AWS

// "0:3", ":3", "4:", ":" or "2": both ends are in it; without a last one it reaches as far as there are nodes.
struct NodeRange {
  uint32_t first = 0;
  std::optional<uint32_t> last;
  bool open() const { return !last; }
  bool has(uint32_t node) const { return node >= first && (!last || node <= *last); }
};
Result<NodeRange> parse_node_range(std::string_view text);

// Which range each of the nodes is of, by its place in the list. Where ranges lie one within another, the narrower one
// counts. Errors also: a node of no range, a range beyond the nodes, two that cross without one lying within the other.
Result<std::vector<size_t>> nodes_by_range(const std::vector<NodeRange>& ranges, uint32_t nodes);

// "4b7d..#3": node 3 of a job.
std::string node_id(const std::string& job_id, domain::HostIndex node);
// The job and the node; no node where `id` is a job's own.
std::pair<std::string, std::optional<domain::HostIndex>> split_node_id(const std::string& id);

}  // namespace trainyard::batch
