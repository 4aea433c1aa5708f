#include "cluster_setup/node_status.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cluster_setup/cluster_record.hpp"
#include "cluster_setup/names.hpp"

namespace trainyard::cluster_setup {
namespace {

constexpr size_t kFields = 7;
constexpr size_t kTextBytesMax = 256;
constexpr int64_t kGpusCountedMax = 1024;

// Sums the GPUs of "gpu:nvidia_a100:2(S:0-1),gpu:1".
int64_t gpus_of(std::string_view gres) {
  int64_t sum = 0;
  for (std::string_view part : split(gres, ',')) {
    part = part.substr(0, part.find('('));
    if (!part.starts_with("gpu:")) continue;
    const auto count = parse_int(part.substr(part.rfind(':') + 1));
    if (count && *count > 0 && *count <= kGpusCountedMax) sum += *count;
    if (sum > kGpusCountedMax) return kGpusCountedMax;
  }
  return sum;
}

}  // namespace

Result<std::vector<NodeStatus>> read_node_status(std::string_view output) {
  std::vector<NodeStatus> nodes;
  for (const std::string_view line : split(output, '\n')) {
    if (trim(line).empty()) continue;
    auto fields = split(line, '|');
    const Error error =
        corrupt("unexpected line '" + to_utf8(shorten(line, 120)) + "' in sinfo's output");
    if (fields.size() < kFields || !is_node_name(fields[0])) return error;
    NodeStatus node;
    node.name = fields[0];
    node.state = to_utf8(shorten(fields[1], kTextBytesMax));
    const auto cpus = parse_int(fields[2]), memory = parse_int(fields[3]);
    if (!cpus || *cpus < 0 || *cpus > kCpusMax || !memory || *memory < 0 || *memory > kMemoryMibMax)
      return error;
    node.cpus = *cpus, node.memory_mib = *memory;
    node.gpus = gpus_of(fields[4]);
    if (fields[5] != "N/A") node.version = to_utf8(shorten(fields[5], kTextBytesMax));
    // An administrator writes the reason, which may contain the separator.
    const std::string_view last = line.substr(size_t(fields[6].data() - line.data()));
    if (last != "none") node.reason = to_utf8(shorten(last, kTextBytesMax));
    const bool twice = std::any_of(nodes.begin(), nodes.end(), [&](const NodeStatus& other) {
      return other.name == node.name;
    });
    if (twice) continue;
    nodes.push_back(std::move(node));
    if (nodes.size() > kMachinesMax)
      return exhausted("Slurm has more than " + std::to_string(kMachinesMax) + " nodes");
  }
  return nodes;
}

}  // namespace trainyard::cluster_setup
