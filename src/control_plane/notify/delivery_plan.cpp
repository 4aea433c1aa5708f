#include "notify/delivery_plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace trainyard::notify {
namespace {

constexpr uint32_t kImmediateRetries = 2;
constexpr uint32_t kEarlyRetries = 10;
constexpr uint32_t kGrowingRetries = 10;
constexpr Duration kEarlyPause = 10s;
constexpr Duration kLongestPause = 10min;
constexpr Duration kLanePauseMax = 60s;
constexpr uint32_t kLaneDoublingsMax = 6;

}  // namespace

DeliveryPlan plan_deliveries(std::span<const Lane> lanes, const DeliveryLimits& limits,
                             Instant now) {
  size_t running = 0, suspects = 0;
  std::map<std::string_view, size_t> of_host;
  std::vector<size_t> due;
  DeliveryPlan plan;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Lane& lane = lanes[i];
    running += lane.in_flight;
    if (lane.suspect) suspects += lane.in_flight;
    if (!lane.host.empty()) of_host[lane.host] += lane.in_flight;
    if (!lane.due) continue;
    const Instant at = std::max(*lane.due, lane.paused_until);
    if (at <= now)
      due.push_back(i);
    else if (!plan.next || at < *plan.next)
      plan.next = at;
  }
  std::ranges::sort(due, [&](size_t a, size_t b) {
    return std::pair(*lanes[a].due, a) < std::pair(*lanes[b].due, b);
  });
  for (const size_t i : due) {
    const Lane& lane = lanes[i];
    if (running >= limits.threads) break;
    if (lane.in_flight >= limits.per_target) continue;
    if (lane.suspect && (lane.in_flight > 0 || suspects >= limits.suspects)) continue;
    size_t* const host = lane.host.empty() ? nullptr : &of_host[lane.host];
    if (host && *host >= limits.per_host) continue;
    if (host) ++*host;
    if (lane.suspect) ++suspects;
    ++running;
    plan.starts.push_back(i);
  }
  return plan;
}

std::optional<Duration> pause_after(uint32_t attempt, double jitter) {
  if (attempt >= kAttemptsMax) return std::nullopt;
  if (attempt <= kImmediateRetries) return Duration(0);
  Duration pause = kLongestPause;
  if (attempt <= kImmediateRetries + kEarlyRetries) {
    pause = kEarlyPause;
  } else if (attempt <= kImmediateRetries + kEarlyRetries + kGrowingRetries) {
    const double step = double(attempt - kImmediateRetries - kEarlyRetries) / kGrowingRetries;
    pause = Duration(
        int64_t(double(kEarlyPause / 1ms) * std::pow(double(kLongestPause / kEarlyPause), step)));
  }
  const double spread = 0.8 + 0.4 * std::clamp(jitter, 0.0, 1.0);
  return Duration(int64_t(double(pause / 1ms) * spread));
}

Duration lane_pause(uint32_t failures) {
  if (failures <= kImmediateRetries) return Duration(0);
  const uint32_t doublings = std::min(failures - kImmediateRetries - 1, kLaneDoublingsMax);
  return std::min<Duration>(kLanePauseMax, Duration(1s) * (int64_t(1) << doublings));
}

}  // namespace trainyard::notify
