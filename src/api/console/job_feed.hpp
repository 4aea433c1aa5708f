// JobFeed stores the last changes of jobs, for readers that follow them.
//
// All readers share one ring buffer, and each has a position in it. So a slow reader costs no
// memory, and the cost of a change does not depend on the number of readers. A reader that fell
// behind by more than the ring gets `missed`, and reads all jobs again.
//
// Threads: callable from anywhere; publish() does not block. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_safety.hpp"

namespace trainyard::api::console {

class JobFeed {
 public:
  // The size of the ring: four seconds with 1,000 changes a second, some 500 KiB.
  static constexpr size_t kChangesMax = 4096;

  void publish(const std::string& region, const std::string& job);

  // Returns the position behind all changes so far.
  uint64_t position() const;

  struct Changes {
    std::vector<std::string> jobs;  // each once, in the order of the last change
    uint64_t position = 0;          // for the next call
    bool missed = false;            // the reader fell behind: any job may have changed
  };
  // Returns the changes of the region since `position`.
  Changes since(uint64_t position, const std::string& region) const;

 private:
  struct Change {
    std::string region, job;
  };
  mutable Mutex mutex_;
  std::vector<Change> ring_ GUARDED_BY(mutex_);
  uint64_t next_ GUARDED_BY(mutex_) = 0;  // changes so far
};

}  // namespace trainyard::api::console
