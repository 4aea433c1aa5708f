// Reads the node ranges of multi-node parallel jobs. In such a gang, hosts (nodes) may differ by
// range, and the end of the main node ends the job.
//
// Threads: pure. Errors: invalid, with a message for the client.
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

inline constexpr uint32_t kNodesMax = 1000;  // per job, as AWS
inline constexpr size_t kNodeRangesMax = 5;  // per definition, as AWS

// "0:3", ":3", "4:", ":" or "2". Both ends are included. Without a last node, the range ends at the
// job's last node.
struct NodeRange {
  uint32_t first = 0;
  std::optional<uint32_t> last;
  bool open() const { return !last; }
  bool has(uint32_t node) const { return node >= first && (!last || node <= *last); }
};
Result<NodeRange> parse_node_range(std::string_view text);

// Returns for each node the index of its range. If one range contains another, the narrower one
// applies. Errors also: a node without a range, a range beyond the last node, two equal ranges, two
// that overlap partly.
Result<std::vector<size_t>> nodes_by_range(const std::vector<NodeRange>& ranges, uint32_t nodes);

// Returns the id of a node: "4b7d..#3" is node 3 of the job "4b7d..".
std::string node_id(const std::string& job_id, domain::HostIndex node);
// Splits a node's id into the job's id and the node. Returns nullopt for the id of a job, and
// kNodesMax for an invalid node.
std::pair<std::string, std::optional<domain::HostIndex>> split_node_id(const std::string& id);

}  // namespace trainyard::batch
