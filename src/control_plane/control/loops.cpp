#include "control/loops.hpp"

#include <algorithm>

#include "base/thread_safety.hpp"

namespace trainyard::control {

Loops::Loops(ControlPlane& control, Duration reconcile_interval, Clock* clock,
             LoopStatistics* statistics)
    : control_(control), clock_(clock), statistics_(clock ? statistics : nullptr) {
  control.on_due([this] { commit_due_.set(); }, [this] { reconcile_due_.set(); });
  commit_due_.set();  // for commands submitted before the start
  commit_thread_ = std::thread([this] {
    while (commit_due_.wait()) commit();
  });
  reconcile_thread_ = std::thread([this, reconcile_interval] {
    std::chrono::nanoseconds took{};
    do {
      took = control_.reconcile_step();
      if (statistics_ && took.count() > 0)
        statistics_->reconcile_seconds.add(std::chrono::duration<double>(took).count());
    } while (
        reconcile_due_.rest(std::min<std::chrono::nanoseconds>(took * kRestFactor, kRestMax)) &&
        reconcile_due_.wait_for(reconcile_interval));
  });
}

Loops::~Loops() {
  // Stops reconciling first, so that its last commands can still be committed.
  reconcile_due_.stop();
  reconcile_thread_.join();
  commit_due_.stop();
  commit_thread_.join();
  control_.on_due({}, {});
}

void Loops::commit() {
  if (!statistics_) return control_.commit_step();
  const auto began = clock_->monotonic();
  control_.commit_step();
  statistics_->commit_seconds.add(
      std::chrono::duration<double>(clock_->monotonic() - began).count());
}

void Loops::Due::set() {
  {
    const MutexLock lock(mutex_);
    due_ = true;
  }
  changed_.notify_one();
}

void Loops::Due::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
}

bool Loops::Due::wait() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() REQUIRES(mutex_) { return due_ || stopped_; });
  due_ = false;
  return !stopped_;
}

bool Loops::Due::wait_for(Duration longest) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, longest, [&]() REQUIRES(mutex_) { return due_ || stopped_; });
  due_ = false;
  return !stopped_;
}

bool Loops::Due::rest(std::chrono::nanoseconds time) {
  MutexLock lock(mutex_);
  return !changed_.wait_for(lock, time, [&]() REQUIRES(mutex_) { return stopped_; });
}

}  // namespace trainyard::control
