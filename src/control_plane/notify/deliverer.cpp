#include "notify/deliverer.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "base/log.hpp"

namespace trainyard::notify {
namespace {

// Due times are wall clock times. The clock may be changed, so each wait is limited.
constexpr Duration kLongestWait = 1s;
// The pause before a delivery whose result could not be stored is attempted again.
constexpr Duration kStoreFaultPause = 10s;

double fraction(Random& random) { return double(random.number() >> 11) / double(1ull << 53); }

void log_failure(const Delivery& delivery, const Sent& sent, std::string_view then) {
  log(Level::warning, "notify", "a delivery failed",
      {{"target", delivery.target},
       {"attempt", std::to_string(delivery.attempts)},
       {"why", sent.what},
       {"then", std::string(then)}});
}

}  // namespace

Deliverer::Deliverer(DelivererParts parts) : parts_(std::move(parts)) {}

Deliverer::~Deliverer() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Deliverer::start() {
  for (size_t i = 0; i < parts_.limits.threads; ++i) threads_.emplace_back([this] { run(); });
}

void Deliverer::add(std::vector<Delivery> deliveries) {
  if (deliveries.empty()) return;
  {
    const MutexLock lock(mutex_);
    for (Delivery& each : deliveries) {
      LaneState& lane = lanes_[each.target];
      const Instant due = each.due;
      lane.waiting.emplace(due, std::move(each));
      ++counts_.pending;
    }
  }
  changed_.notify_all();
}

bool Deliverer::has_capacity(const std::string& target) const {
  const MutexLock lock(mutex_);
  const auto lane = lanes_.find(target);
  const size_t waiting = lane == lanes_.end() ? 0 : lane->second.waiting.size();
  return waiting <
         (counts_.pending < parts_.limits.pending ? kPerTargetMax : kPerTargetWhenFullMax);
}

Deliverer::Counts Deliverer::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

void Deliverer::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    std::optional<Instant> next;
    if (auto delivery = take_due(next)) {
      lock.unlock();
      attempt(std::move(*delivery));
      lock.lock();
      continue;
    }
    Duration wait = kLongestWait;
    if (next) wait = std::clamp<Duration>(*next - parts_.clock.now(), 1ms, kLongestWait);
    changed_.wait_for(lock, wait);
  }
}

size_t Deliverer::attempt_due() {
  for (size_t attempts = 0;; ++attempts) {
    std::optional<Delivery> delivery;
    {
      const MutexLock lock(mutex_);
      std::optional<Instant> next;
      delivery = take_due(next);
    }
    if (!delivery) return attempts;
    attempt(std::move(*delivery));
  }
}

std::optional<Delivery> Deliverer::take_due(std::optional<Instant>& next) {
  if (const std::string why = parts_.store.failure(); !why.empty()) {
    if (!std::exchange(failure_logged_, true))
      log(Level::error, "notify", "stopped delivering notifications until the next start",
          {{"why", why}, {"pending", std::to_string(counts_.pending)}});
    return std::nullopt;
  }
  const Instant now = parts_.clock.now();
  std::vector<Lane> lanes;
  std::vector<LaneState*> states;
  lanes.reserve(lanes_.size());
  for (auto& [target, state] : lanes_) {
    if (!state.waiting.empty() && state.in_flight == 0) state.info = parts_.info(target);
    lanes.push_back(
        {state.info.host, !state.info.trusted || state.failures > 0, state.in_flight,
         state.waiting.empty() ? std::nullopt : std::optional(state.waiting.begin()->first),
         state.paused_until});
    states.push_back(&state);
  }
  const DeliveryPlan plan = plan_deliveries(lanes, parts_.limits, now);
  next = plan.next;
  if (plan.starts.empty()) return std::nullopt;
  LaneState& lane = *states[plan.starts.front()];
  auto first = lane.waiting.extract(lane.waiting.begin());
  ++lane.in_flight;
  return std::move(first.mapped());
}

Sent Deliverer::send(const Delivery& delivery) {
  if (!parts_.info(delivery.target).exists)
    return {SendResult::refused, "the subscription or the target was removed"};
  const auto message = parts_.store.message(delivery.message);
  if (!message)
    return {message.error().kind == Kind::not_found || message.error().kind == Kind::invalid
                ? SendResult::refused
                : SendResult::retry,
            message.error().message};
  try {
    return parts_.send(delivery.target, *message);
  } catch (const std::exception& fault) {  // the thread must continue with other messages
    return {SendResult::refused, fault.what()};
  }
}

void Deliverer::attempt(Delivery delivery) {
  const Sent sent = send(delivery);
  ++delivery.attempts;
  store_result(std::move(delivery), sent);
}

// Stores the result before it updates the lane, so that the delivery is not attempted meanwhile.
void Deliverer::store_result(Delivery delivery, const Sent& sent) {
  const Instant now = parts_.clock.now();
  std::optional<Duration> pause;
  if (sent.result == SendResult::retry)
    pause = pause_after(delivery.attempts, fraction(parts_.random));
  Result<void> stored;
  if (pause) {
    delivery.due = now + *pause;
    stored = parts_.store.postpone(delivery);
    log_failure(delivery, sent, "retried");
  } else {
    if (sent.result != SendResult::delivered) log_failure(delivery, sent, "dropped");
    stored = parts_.store.finish(delivery);
  }
  if (!stored)
    log(Level::error, "notify",
        parts_.store.failure().empty()
            ? "cannot store the result of a delivery; it is attempted again"
            : "cannot store the result of a delivery; it may be sent again after the next start",
        {{"target", delivery.target}, {"why", stored.error().message}});
  {
    const MutexLock lock(mutex_);
    LaneState& lane = lanes_[delivery.target];
    --lane.in_flight;
    if (sent.result == SendResult::retry) {
      ++counts_.failed;
      lane.paused_until = now + lane_pause(++lane.failures);
    } else {
      ++(sent.result == SendResult::delivered ? counts_.delivered : counts_.refused);
      lane.failures = 0;
      lane.paused_until = {};
    }
    // If the result was not stored, the delivery stays pending and is attempted again.
    if (pause || !stored) {
      if (!stored) delivery.due = now + kStoreFaultPause;
      const Instant due = delivery.due;
      lane.waiting.emplace(due, std::move(delivery));
    } else {
      --counts_.pending;
      if (lane.waiting.empty() && lane.in_flight == 0 && lane.failures == 0)
        lanes_.erase(delivery.target);
    }
  }
  changed_.notify_all();
}

}  // namespace trainyard::notify
