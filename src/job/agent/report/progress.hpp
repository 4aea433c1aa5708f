// Reports the progress of transfers to and from this host to the server, for display only.
//
// Threads: callable from anywhere. Lifetime: the constructor's arguments outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "objects/objects.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

inline constexpr Duration kProgressInterval = 500ms;  // fast enough for people

class ProgressMeter {
 public:
  // Reports the start of the transfer at once. `say` may be empty; then nothing is reported.
  ProgressMeter(std::string what, std::function<void(const wire::Message&)> say, Clock& clock);
  void expect(uint64_t bytes) { total_ += bytes; }
  void moved(uint64_t bytes);
  void finish();

 private:
  void report(bool finished);

  const std::string what_;
  const std::function<void(const wire::Message&)> say_;
  Clock& clock_;
  std::atomic<uint64_t> done_ = 0, total_ = 0;
  Mutex mutex_;
  std::chrono::nanoseconds reported_at_ GUARDED_BY(mutex_){};
};

// Wraps a store so that read bytes count as moved. `counts_listed`: all listed objects will be
// read, so their bytes count as expected.
std::unique_ptr<objects::Objects> counted(objects::Objects& store, ProgressMeter& meter,
                                          bool counts_listed);

}  // namespace trainyard::agent
