// Decides what a power failure leaves of the changes of a file that were not synced.
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
// Keeps any of the changes, in any order, each whole or some of its sectors.
std::string survivor_of(World& world, std::string synced, const std::vector<FileChange>& unsynced);

}  // namespace trainyard::sim
