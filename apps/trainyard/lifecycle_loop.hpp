// Applies the lifecycle rules of buckets when the server starts and then every hour. Of the wall
// clock and control's time the earlier one counts, so that a clock that was set ahead removes
// nothing early.
//
// Threads: one of its own; the destructor ends a pass early and joins it.
// Errors:  none: what fails is logged, and tried again by the next pass.
// Lifetime: objects, control and clock outlive it.
#pragma once

#include <thread>

#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "control/control.hpp"
#include "objects/objects.hpp"
#include "s3/bucket_settings.hpp"

namespace trainyard {

class LifecycleLoop {
 public:
  LifecycleLoop(objects::Objects& objects, control::Control& control, Clock& clock);
  LifecycleLoop(const LifecycleLoop&) = delete;
  ~LifecycleLoop();

 private:
  void run();
  bool stopping() const;

  objects::Objects& objects_;
  control::Control& control_;
  const api::s3::BucketSettings settings_;
  Clock& clock_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace trainyard
