// A Timeline writes the events of a negotiator to a file that browsers show (chrome://tracing,
// Perfetto): each tensor is a row, each phase a block. The first event says when the negotiator
// began, by the wall clock, with SageMaker's name for it: "start_time_since_epoch_in_micros". So
// files of several ranks, and the timeline of the job, have one clock.
//
// Threads: call from anywhere.
// Errors:  conflict, when a file is being written already; those of opening the file. A disk that
//          fills up later ends the file early, not the training.
// Limits:  kEventsMax in a file; further ones are left out, and the file says so.
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
  // `began`: of the negotiator.
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
