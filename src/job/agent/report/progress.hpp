// Reports bytes that move to or from this host to the server now and then: for display, not for the
// record.
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
  // `say` may be empty: then nothing is reported. Reports its beginning at once.
  ProgressMeter(std::string what, std::function<void(const wire::Message&)> say, Clock& clock);
  void expect(uint64_t bytes) { total_ += bytes; }
  void moved(uint64_t bytes);
  void finish();

 private:
  void tell(bool finished);

  const std::string what_;
  const std::function<void(const wire::Message&)> say_;
  Clock& clock_;
  std::atomic<uint64_t> done_ = 0, total_ = 0;
  Mutex mutex_;
  std::chrono::nanoseconds reported_at_ GUARDED_BY(mutex_){};
};

// Wraps a store: listed bytes are expected, and read bytes have moved. `counts_listed`: everything
// that is listed will be read.
std::unique_ptr<objects::Objects> counted(objects::Objects& store, ProgressMeter& meter,
                                          bool counts_listed);

}  // namespace trainyard::agent
