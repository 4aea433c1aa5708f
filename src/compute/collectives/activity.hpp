// Counts the collectives of this process in the activity table of its host
// (base/activity_table.hpp), so that a rank that no longer takes part is seen from outside.
//
// Threads: callable from anywhere. Errors: none: without a table, nothing is counted.
#pragma once

#include <cstdint>
#include <string>

#include "base/activity_table.hpp"

namespace trainyard::collectives {

// The table's file, and the rank that the launcher gave to this process. "": none is kept.
struct ActivityFile {
  std::string path = {};
  int rank = 0;
};

class ActivityCounter {
 public:
  explicit ActivityCounter(const ActivityFile& file);
  ~ActivityCounter();
  ActivityCounter(const ActivityCounter&) = delete;
  ActivityCounter& operator=(const ActivityCounter&) = delete;

  void count();  // one relaxed addition

 private:
  void* table_ = nullptr;
  uint64_t* collectives_ = nullptr;  // of our slot; nullptr: not counted
};

}  // namespace trainyard::collectives
