// LifecycleLoop applies the lifecycle rules of buckets when the server starts and then every hour.
// It uses the earlier one of the wall clock and control's time, so that setting the clock ahead
// removes nothing early while the machine is up. A server that has lost its lease removes nothing
// more.
//
// Threads: starts a thread, which also calls why_not; the destructor ends a pass early and joins
// it. Errors:  none: failures are logged, and the next pass retries. Lifetime: objects, control and
// clock outlive it.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "control/control.hpp"
#include "objects/objects.hpp"
#include "s3/bucket_settings.hpp"

namespace trainyard::api::s3 {

class LifecycleLoop {
 public:
  // `why_not`: returns "" while this server may act, or why it may not.
  LifecycleLoop(objects::Objects& objects, control::Control& control, Clock& clock,
                std::function<std::string()> why_not);
  LifecycleLoop(const LifecycleLoop&) = delete;
  ~LifecycleLoop();

 private:
  void run();
  bool stopping() const;
  bool ends_pass() const { return stopping() || !why_not_().empty(); }

  objects::Objects& objects_;
  control::Control& control_;
  const BucketSettings settings_;
  Clock& clock_;
  const std::function<std::string()> why_not_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace trainyard::api::s3
