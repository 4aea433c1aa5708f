// Determines which unsynced changes of a file survive a power failure.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/world.hpp"

namespace trainyard::sim {

// A write, or a truncation to `at`.
struct FileChange {
  uint64_t at = 0;
  std::string bytes;
  bool truncates = false;
};

void apply_change(const FileChange& change, std::string& content);
// Returns the content after a power failure: applies a random subset of the changes, in any order,
// each completely or in some of its sectors.
std::string survivor_of(World& world, std::string synced, const std::vector<FileChange>& unsynced);

}  // namespace trainyard::sim
