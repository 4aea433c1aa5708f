// Counts the collectives of this process in the activity table of its host
// (base/activity_table.hpp), and describes the current call there. So the agent of the host can see
// a rank that is stuck or slow.
//
// The record of a rank describes the calls of one group of the process: the largest, and the oldest
// if several are equally large.
//
// Threads: count() and beat() from any thread; the other functions are confined to one thread at a
// time.
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

// The file of the table, and the rank that the launcher gave to this process. Without a path,
// nothing is counted.
struct ActivityFile {
  std::string path = {};
  int rank = 0;
  uint64_t group = 0;  // as CallRecord::group
};

class ActivityCounter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `rank` and `ranks` describe the group. The calls of a group of one rank are not described.
  explicit ActivityCounter(const ActivityFile& file, int rank = 0, int ranks = 0);
  ~ActivityCounter();
  ActivityCounter(const ActivityCounter&) = delete;
  ActivityCounter& operator=(const ActivityCounter&) = delete;

  void count();  // one relaxed addition

  // Returns true if calls of this group are described. Otherwise the caller need not read the
  // clock.
  bool describes() const;
  // Announces a call. The call begins with enter(), after its arguments were checked.
  void announce(Time now);
  void enter(CallKind kind, uint64_t bytes, uint64_t label);
  // Ends the call that enter() began.
  void leave(Time now, bool completed);
  // Counts a call as completed without leaving, for a loop of several calls.
  void pass();
  // Records that this rank, which is inside a call, is alive.
  void beat();
  // Counts the time of a message between two ranks as time inside a call, not outside.
  void exclude(Time began, Time ended);
  void set_links(std::span<const LinkLoad> loads);

 private:
  void take_record(CallRecord& record, const ActivityFile& file, int rank, int ranks);

  void* table_ = nullptr;
  size_t table_bytes_ = 0;
  uint64_t* collectives_ = nullptr;  // the counter in our slot; nullptr: not counted
  CallRecord* record_ = nullptr;     // in our slot; nullptr: calls are not described
  uint64_t writer_ = 0;              // marks the record as ours
  bool announced_ = false;
  std::atomic<bool> inside_ = false;
  Time announced_at_{};
  Time outside_since_{};
};

}  // namespace trainyard::collectives
