// A Timeline writes the events of a negotiator to a file for chrome://tracing or Perfetto: each
// tensor is a row, each phase a block. The first event has the wall-clock time at which the
// negotiator started, under SageMaker's name "start_time_since_epoch_in_micros". So files of
// several ranks, and the timeline of the job, have one clock.
//
// Threads: call from any thread.
// Errors:  conflict, if a file is being written already; those of opening the file. If the disk
// fills up later, the file ends early, and the training continues.
// Limits:  kEventsMax in a file; further events are omitted, which the file states.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "gradients/fusion/negotiator.hpp"

namespace trainyard::gradients {

class Timeline {
 public:
  ~Timeline() { stop(); }
  // `began` is Negotiator::began().
  Result<void> start(const std::string& path, bool mark_cycles,
                     std::chrono::steady_clock::time_point began);
  void stop();
  void write(const Event& event);

  static constexpr uint64_t kEventsMax = 20'000'000;  // two gigabytes of text

 private:
  int row_of(const std::string& name) REQUIRES(mutex_);

  Mutex mutex_;
  std::ofstream file_ GUARDED_BY(mutex_);
  bool mark_cycles_ GUARDED_BY(mutex_) = false;
  uint64_t events_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> rows_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::gradients
