#include "launch/local/reaper.hpp"

#include <algorithm>
#include <functional>

#include "base/log.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::launch {

NetworkReaper::NetworkReaper(Clock& clock, Remove remove, ReaperPace pace, bool own_thread)
    : clock_(clock), remove_(std::move(remove)), pace_(pace) {
  if (own_thread) thread_ = std::thread([this] { run(); });
}

NetworkReaper::~NetworkReaper() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
  else
    drain();
}

void NetworkReaper::take(networks::PrivateNetwork network, std::function<Result<void>()> then) {
  {
    const MutexLock lock(mutex_);
    items_.push_back({std::move(network), std::move(then), false, clock_.monotonic()});
  }
  changed_.notify_all();
}

void NetworkReaper::take_rest(std::function<Result<void>()> then) {
  {
    const MutexLock lock(mutex_);
    items_.push_back({{}, std::move(then), true, clock_.monotonic()});
  }
  changed_.notify_all();
}

NetworkReaper::Start::Start(NetworkReaper& reaper) : reaper_(reaper) {
  const MutexLock lock(reaper_.mutex_);
  reaper_.starts_++;
}

NetworkReaper::Start::~Start() {
  {
    const MutexLock lock(reaper_.mutex_);
    reaper_.starts_--;
    // Counts only networks that waited before the start: others are removed before the next start.
    reaper_.one_may_go_ = !reaper_.items_.empty();
    reaper_.last_start_ = reaper_.clock_.monotonic();
  }
  reaper_.changed_.notify_all();
}

std::vector<networks::Subnet> NetworkReaper::waiting() const {
  const MutexLock lock(mutex_);
  std::vector<networks::Subnet> subnets;
  for (const auto& item : items_)
    if (!item.network.hosts.empty()) subnets.push_back(item.network.subnet);
  return subnets;
}

void NetworkReaper::drain() {
  MutexLock lock(mutex_);
  drains_++;
  const uint64_t begun = rounds_;
  changed_.notify_all();
  if (!thread_.joinable()) {
    while (!items_.empty() && round()) {
    }
    drains_--;
    return;
  }
  // A round may have begun before the last item came; the next one includes it.
  changed_.wait(lock, [&]() REQUIRES(mutex_) { return items_.empty() || rounds_ >= begun + 2; });
  drains_--;
}

std::chrono::nanoseconds NetworkReaper::due() const {
  if (in_haste()) return std::chrono::nanoseconds::min();
  if (items_.size() >= pace_.waiting_max || (pace_.one_by_one && starts_ == 0 && one_may_go_))
    return not_before_;
  const auto oldest =
      std::min_element(items_.begin(), items_.end(), [](const auto& a, const auto& b) {
        return a.since < b.since;
      })->since;
  const std::chrono::nanoseconds latest = oldest + pace_.delay_max;
  const std::chrono::nanoseconds quiet =
      starts_ > 0 ? latest : std::max(oldest, last_start_) + pace_.quiet;
  return std::max(std::min(quiet, latest), not_before_);
}

void NetworkReaper::work() {
  MutexLock lock(mutex_);
  if (!items_.empty() && due() <= clock_.monotonic()) (void)round();
}

void NetworkReaper::run() {
  MutexLock lock(mutex_);
  for (;;) {
    if (items_.empty()) {
      if (stopped_) return;
      changed_.wait(lock);
      continue;
    }
    const auto when = due(), now = clock_.monotonic();
    if (now < when) {
      changed_.wait_for(lock, when - now);
      continue;
    }
    const bool removed = round();
    // The next server removes what could not be removed here.
    if (!removed && stopped_) return;
  }
}

bool NetworkReaper::round() {
  const size_t count = in_haste() || !pace_.one_by_one ? items_.size() : 1;
  one_may_go_ = false;
  // Other threads may append meanwhile, which may move the items, so they are copied.
  const std::vector<Item> items(items_.begin(), items_.begin() + ptrdiff_t(count));
  mutex_.unlock();
  std::vector<networks::PrivateNetwork> networks;
  for (const Item& item : items)
    if (!item.removed) networks.push_back(item.network);
  const auto removed = networks.empty() ? ok() : remove_(networks);
  if (!removed)
    log(Level::error, "launch",
        "cannot remove the networks of ended gangs: " + removed.error().message);
  std::vector<bool> done(count, false);
  for (size_t i = 0; i < count && removed; i++) {
    const auto finished = items[i].then ? items[i].then() : ok();
    done[i] = bool(finished);
    if (!finished)
      log(Level::error, "launch",
          "removing what is left of an attempt: " + finished.error().message);
  }
  mutex_.lock();
  // Failed items move to the end, so that they do not delay the others.
  for (size_t i = 0; i < count; i++) {
    if (done[i]) continue;
    items_.push_back(items[i]);
    items_.back().removed |= bool(removed);
  }
  items_.erase(items_.begin(), items_.begin() + ptrdiff_t(count));
  const bool all = std::ranges::all_of(done, std::identity());
  if (!all) not_before_ = clock_.monotonic() + kRetryPause;
  rounds_++;
  changed_.notify_all();
  return all;
}

}  // namespace trainyard::launch
