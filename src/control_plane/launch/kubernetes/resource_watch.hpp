// ResourceWatch keeps a cache of one resource current: it lists the objects once, then applies the
// events of watches that resume where the last one has ended (watch_plan.hpp).
//
// Its thread sends the requests. Without a thread, refresh() sends them: tests are then
// deterministic.
//
// Threads: read_first(), start(), stop() and refresh() on one thread, the others from anywhere.
// Errors: those of kubernetes.hpp, corrupt, exhausted. Lifetime: everything passed to the
// constructor outlives it; stop() ends its thread, after Kubernetes::stop().
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "launch/kubernetes/list_objects.hpp"
#include "launch/kubernetes/watch_lines.hpp"
#include "launch/kubernetes/watch_plan.hpp"

namespace trainyard::launch {

// Receives the reports of a ResourceWatch, on its thread.
struct WatchReports {
  std::function<void()> changed;   // the cache differs
  std::function<void()> answered;  // the API server answers: a list, or the beginning of a watch
  std::function<void(const Error&)> failed;  // a request failed; it is repeated
};

// `Cache` is a WatchedObjects, or derived from it.
template <class Cache>
class ResourceWatch {
 public:
  using Object = typename Cache::Object;
  using Event = KubernetesEvent<Object>;

  ResourceWatch(Kubernetes& kubernetes, std::string mark, Clock& clock, Random& random,
                WatchReports reports)
      : kubernetes_(kubernetes),
        mark_(std::move(mark)),
        clock_(clock),
        random_(random),
        reports_(std::move(reports)) {}
  ~ResourceWatch() { stop(); }
  ResourceWatch(const ResourceWatch&) = delete;

  // Fills the cache by a list.
  Result<void> read_first() { return list(); }
  // Starts the thread. Requires: read_first() has succeeded.
  void start() {
    thread_ = std::thread([this] { run(); });
  }
  // Requires: Kubernetes::stop() was called, if the thread was started.
  void stop() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  // Watches until the watch ends, and lists before if that is necessary. Requires: no thread.
  Result<void> refresh() {
    for (int request = 1;; ++request) {
      const bool lists = plan_.lists();
      auto done = request_next(WatchPlan::kStableAfter);
      if ((lists ? !done : !plan_.lists()) || request == kRefreshRequestsMax) return done;
    }
  }

  // Call a function with the cache; the second one may change it.
  template <class F>
  auto with(const F& use) {
    const MutexLock lock(mutex_);
    return use(cache_);
  }
  template <class F>
  void change(const F& change) {
    const MutexLock lock(mutex_);
    change(cache_);
    note_difference();
  }
  // Returns a number that grows when an object differs.
  uint64_t generation() {
    const MutexLock lock(mutex_);
    return generation_;
  }
  // Returns the objects; the same ones as before if none differs.
  std::shared_ptr<const typename Cache::Objects> objects() {
    const MutexLock lock(mutex_);
    if (!shown_) shown_ = std::make_shared<const typename Cache::Objects>(cache_.objects());
    return shown_;
  }

 private:
  // list, watch, list after a 410, watch
  static constexpr int kRefreshRequestsMax = 4;

  // Lists or watches, as planned, and reports a failure.
  Result<void> request_next(Duration lasted_min);
  Result<void> list();
  // `lasted_min`: a watch that the API server ends counts as if it had lasted so long at least.
  Result<void> watch(Duration lasted_min);
  // Reads what a watch sends. Sets `differs` if the cache differs then.
  Result<void> take(std::string_view bytes, WatchLines& lines, bool& differs);
  void run();
  void note_difference() REQUIRES(mutex_) {
    shown_.reset();
    ++generation_;
  }

  Kubernetes& kubernetes_;
  const std::string mark_;
  Clock& clock_;
  Random& random_;
  const WatchReports reports_;
  WatchPlan plan_;  // confined to the thread that sends the requests
  Mutex mutex_;
  ConditionVariable changed_;
  Cache cache_ GUARDED_BY(mutex_);
  std::shared_ptr<const typename Cache::Objects> shown_ GUARDED_BY(mutex_);
  uint64_t generation_ GUARDED_BY(mutex_) = 0;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

template <class Cache>
Result<void> ResourceWatch<Cache>::request_next(Duration lasted_min) {
  const bool lists = plan_.lists();
  auto done = lists ? list() : watch(lasted_min);
  if (done) return done;
  // API servers forget old changes, and a connection breaks when one restarts: these count as
  // failures once the next request fails too.
  const bool is_usual = !lists && (done.error().is(KubernetesFault::expired) ||
                                   done.error().kind == Kind::unavailable);
  if (!is_usual || plan_.failures() > 1) reports_.failed(done.error());
  return done;
}

template <class Cache>
Result<void> ResourceWatch<Cache>::list() {
  with([](Cache& cache) { cache.begin_list(); });
  auto listed = list_objects<Object>(kubernetes_, mark_);
  if (!listed) {
    plan_.list_failed();
    return std::move(listed).error();
  }
  bool differs = false, again = false;
  {
    const MutexLock lock(mutex_);
    differs = cache_.replace(std::move(listed->objects));
    again = cache_.wants_list();
    if (differs) note_difference();
  }
  plan_.listed(listed->version);
  if (again) plan_.list_next();
  reports_.answered();
  if (differs) reports_.changed();
  return {};
}

template <class Cache>
Result<void> ResourceWatch<Cache>::watch(Duration lasted_min) {
  WatchLines lines;
  Result<void> fault;  // in what the API server sends
  bool again = false;
  KubernetesWatch request;
  request.version = plan_.version();
  request.timeout = WatchPlan::timeout(random_.number());
  request.receive = [&](std::string_view bytes) {
    bool differs = false;
    if (bytes.empty()) reports_.answered();
    fault = take(bytes, lines, differs);
    if (differs) reports_.changed();
    again = with([](Cache& cache) { return cache.wants_list(); });
    return bool(fault) && !again;
  };
  const auto began = clock_.monotonic();
  const auto ended = kubernetes_.watch(kResourceOf<Object>, request);
  auto lasted = std::chrono::duration_cast<Duration>(clock_.monotonic() - began);
  if (fault && ended) lasted = std::max(lasted, lasted_min);
  if (fault)
    plan_.watch_ended(ended, lasted);
  else
    plan_.watch_failed(lasted);
  if (again) plan_.list_next();
  return Result<void>(fault ? ended : fault)
      .in("watching " + std::string(describe(kResourceOf<Object>)));
}

template <class Cache>
Result<void> ResourceWatch<Cache>::take(std::string_view bytes, WatchLines& lines, bool& differs) {
  try {
    return lines.append(bytes, [&](std::string_view line) -> Result<void> {
      const Event event = TRY(read_event<Object>(line, mark_));
      const MutexLock lock(mutex_);
      if (TRY(cache_.apply(event))) {
        differs = true;
        note_difference();
      }
      plan_.received(event.identity.version);
      return {};
    });
  } catch (const std::exception& fault) {  // must not pass through libcurl
    return internal(std::string("reading an event: ") + fault.what());
  }
}

template <class Cache>
void ResourceWatch<Cache>::run() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, plan_.pause(random_.number()),
                      [&]() REQUIRES(mutex_) { return stopped_; });
    if (stopped_) return;
    lock.unlock();
    try {
      (void)request_next({});
    } catch (const std::exception& fault) {
      plan_.list_failed();
      reports_.failed(internal(std::string("reading the answer of Kubernetes: ") + fault.what()));
    }
    lock.lock();
  }
}

}  // namespace trainyard::launch
