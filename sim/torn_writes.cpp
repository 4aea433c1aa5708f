#include "sim/torn_writes.hpp"

#include <algorithm>
#include <utility>

namespace trainyard::sim {
namespace {

constexpr uint64_t kTornBytes = 512;  // a sector of a disk: the largest atomic write

}  // namespace

void apply_change(const FileChange& change, std::string& content) {
  if (change.truncates) return content.resize(std::min<size_t>(content.size(), change.at));
  if (content.size() < change.at + change.bytes.size())
    content.resize(change.at + change.bytes.size());
  content.replace(change.at, change.bytes.size(), change.bytes);
}

std::string survivor_of(World& world, std::string synced, const std::vector<FileChange>& unsynced) {
  std::string content = std::move(synced);
  std::vector<const FileChange*> changes;
  const bool in_order = world.random.chance(3), all = world.random.chance(4);
  for (const FileChange& change : unsynced)
    if (all || world.random.chance(2)) changes.push_back(&change);
  for (size_t left = changes.size(); !in_order && left > 1; --left)
    std::swap(changes[left - 1], changes[world.random.below(left)]);
  for (const FileChange* change : changes) {
    if (change->truncates || !world.random.chance(4)) {
      apply_change(*change, content);
      continue;
    }
    for (uint64_t begin = 0; begin < change->bytes.size(); begin += kTornBytes)
      if (world.random.chance(2))
        apply_change({change->at + begin, change->bytes.substr(begin, kTornBytes)}, content);
  }
  return content;
}

}  // namespace trainyard::sim
