// Counts the collectives of this process in the activity table of its host
// (base/activity_table.hpp), and describes the current call there, so that a rank that is stuck or
// slow is seen from outside.
//
// The record of a rank describes the calls of one group: of the groups of a process the largest,
// and of these the oldest.
//
// Threads: count() and beat() from anywhere; the other functions are confined to one thread at a
//          time.
// Errors:  none: without a table, nothing is counted.
// Cost:    stores to mapped memory, without system calls or locks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "base/activity_table.hpp"
#include "collectives/transport.hpp"

namespace trainyard::collectives {

// The table's file, and the rank that the launcher gave to this process. "": none is kept.
struct ActivityFile {
  std::string path = {};
  int rank = 0;
  uint64_t group = 0;  // as CallRecord::group
};

class ActivityCounter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `rank` and `ranks`: of the group. Fewer than two: its calls are not described.
  explicit ActivityCounter(const ActivityFile& file, int rank = 0, int ranks = 0);
  ~ActivityCounter();
  ActivityCounter(const ActivityCounter&) = delete;
  ActivityCounter& operator=(const ActivityCounter&) = delete;

  void count();  // one relaxed addition

  // Returns true when calls of this group are described: the caller reads the clock only then.
  bool describes() const;
  // Announces a call; it begins with enter(), once it is known that its arguments are valid.
  void announce(Time now);
  void enter(CallKind kind, uint64_t bytes, uint64_t label);
  // Ends a call that has begun.
  void leave(Time now, bool completed);
  // Counts one of several calls as completed, and stays inside.
  void pass();
  // Tells that a rank inside a call is alive.
  void beat();
  // Excludes a time between calls from the time outside: a message between two ranks.
  void exclude(Time began, Time ended);
  void set_links(std::span<const LinkLoad> loads);

 private:
  void take_record(CallRecord& record, const ActivityFile& file, int rank, int ranks);

  void* table_ = nullptr;
  size_t table_bytes_ = 0;
  uint64_t* collectives_ = nullptr;  // of our slot; nullptr: not counted
  CallRecord* record_ = nullptr;     // in our slot; nullptr: calls are not described
  uint64_t writer_ = 0;              // marks the record as ours
  bool announced_ = false;
  std::atomic<bool> inside_ = false;
  Time announced_at_{};
  Time outside_since_{};
};

}  // namespace trainyard::collectives
