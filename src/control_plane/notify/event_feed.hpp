// EventFeed stores the last events, for clients that read them continuously.
//
// All readers share one ring buffer, and each has a position in it, so a slow reader costs no
// memory. `missed` is set for a reader whose next events were already overwritten. Positions are
// valid within one process: a position beyond the last event, which an earlier process returned, is
// set to the end.
//
// Threads: callable from anywhere; does not block. Errors: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::notify {

class EventFeed {
 public:
  // The limits on the ring buffer, which contains the last seconds of events of a busy server.
  static constexpr size_t kEventsMax = 2048;
  static constexpr size_t kBytesMax = 16 << 20;

  void add(const std::string& region, std::shared_ptr<const Json> event, size_t bytes);

  struct Events {
    std::vector<std::shared_ptr<const Json>> events;
    uint64_t position = 0;  // for the next call
    bool missed = false;    // events after the position were overwritten
  };
  // Returns at most `events_max` events of the region after the position.
  Events since(uint64_t position, const std::string& region, size_t events_max) const;
  uint64_t position() const;

 private:
  struct Entry {
    std::string region;
    std::shared_ptr<const Json> event;
    size_t bytes = 0;
  };
  mutable Mutex mutex_;
  std::deque<Entry> ring_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t next_ GUARDED_BY(mutex_) = 0;  // the number of all events so far
};

}  // namespace trainyard::notify
