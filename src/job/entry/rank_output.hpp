// Counts the output of each rank on this host in the activity table (base/activity_table.hpp). The
// agent cannot: it reads the output of all ranks from one pipe.
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
  // `path`: the table's; "" = there is no table.
  explicit RankOutput(const std::string& path);
  // Assigns the next slot to the rank. Requires: the rank has not started, since it searches its
  // slot at its start.
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
