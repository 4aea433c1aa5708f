#include "s3/lifecycle_loop.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "s3/lifecycle.hpp"

namespace trainyard::api::s3 {
namespace {

// Rules count days, so an hour more or less does not matter.
constexpr Duration kInterval = 1h;

}  // namespace

LifecycleLoop::LifecycleLoop(objects::Objects& objects, control::Control& control, Clock& clock,
                             std::function<std::string()> why_not)
    : objects_(objects),
      control_(control),
      settings_(control),
      clock_(clock),
      why_not_(std::move(why_not)),
      thread_([this] { run(); }) {}

LifecycleLoop::~LifecycleLoop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool LifecycleLoop::stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void LifecycleLoop::run() {
  while (!stopping()) {
    const Instant now = clock_.now();
    const LifecycleResult result =
        apply_lifecycle(objects_, settings_, std::min(now, now - control_.clock_offset()),
                        [this] { return ends_pass(); });
    if (result.objects_removed > 0 || result.uploads_aborted > 0 || result.failures > 0)
      log(Level::info, "api", "lifecycle rules were applied",
          {{"removed", std::to_string(result.objects_removed)},
           {"aborted_uploads", std::to_string(result.uploads_aborted)},
           {"failures", std::to_string(result.failures)}});
    MutexLock lock(mutex_);
    changed_.wait_for(lock, kInterval, [this]() REQUIRES(mutex_) { return stopping_; });
  }
}

}  // namespace trainyard::api::s3
