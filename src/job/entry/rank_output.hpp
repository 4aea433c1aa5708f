// Counts the output of each rank that entry starts on this host, in the activity table
// (base/activity_table.hpp): beyond entry, one pipe carries the output of all.
//
// Threads: confined to one. Errors: none: without a table, nothing is counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "os/files.hpp"

namespace trainyard::entry {

class RankOutput {
 public:
  // `path`: of the table; "": there is none.
  explicit RankOutput(const std::string& path);
  // Gives the rank the next slot. Requires: the rank has not started, as it looks for its slot.
  void add(int rank);
  void count(int rank, size_t bytes);

 private:
  void write(size_t offset, uint64_t value) const;

  struct Slot {
    size_t offset = 0;
    uint64_t bytes = 0;
  };
  os::File table_;
  std::map<int, Slot> slots_;  // by rank
};

}  // namespace trainyard::entry
