#include "launch/kubernetes/watch_plan.hpp"

#include <algorithm>

namespace trainyard::launch {

void WatchPlan::listed(const std::string& version) {
  version_ = version;
  lists_ = false;
  failed_watches_ = 0;
}

void WatchPlan::list_failed() {
  lists_ = true;
  ++failures_;
}

void WatchPlan::watch_ended(const Result<void>& how, Duration lasted) {
  // One that an API server has ended early is paced like a failure.
  count(!how || lasted < kStableAfter, lasted);
  const bool resumes = how || how.error().kind == Kind::unavailable;
  if (!resumes || failed_watches_ >= kFailedWatchesMax) lists_ = true;
}

void WatchPlan::watch_failed(Duration lasted) {
  count(true, lasted);
  lists_ = true;
}

void WatchPlan::count(bool failed, Duration lasted) {
  if (lasted >= kStableAfter) failures_ = failed_watches_ = 0;
  if (!failed) return;
  ++failures_;
  ++failed_watches_;
}

Duration WatchPlan::pause(uint64_t random) const {
  if (failures_ == 0) return {};
  const uint32_t doublings = std::min(failures_ - 1, 16u);
  const Duration longest = std::min(kPauseMin * (int64_t{1} << doublings), kPauseMax);
  return longest / 2 + Duration(int64_t(random % uint64_t(longest.count() / 2 + 1)));
}

Duration WatchPlan::timeout(uint64_t random) {
  return kTimeoutMin +
         Duration(int64_t(random % uint64_t((kTimeoutMax - kTimeoutMin).count() + 1)));
}

}  // namespace trainyard::launch
