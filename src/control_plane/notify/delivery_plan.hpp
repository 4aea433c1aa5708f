// Decides which deliveries are attempted now, and when failed ones are attempted again.
//
// A lane has the pending deliveries of one target. Lanes share a few threads, so that none of them
// can take all: a lane has at most `per_target` attempts at once, lanes of one host `per_host`, and
// suspect lanes (unconfirmed, or their last attempt failed) together `suspects`. A target that
// hangs becomes suspect after its first attempt, and then delays suspect targets only.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace trainyard::notify {

struct Lane {
  std::string_view host;  // shared by lanes whose targets are one machine; "": none
  bool suspect = false;
  size_t in_flight = 0;
  std::optional<Instant> due = {};  // of its first pending delivery; unset: none is pending
  Instant paused_until = {};        // after failed attempts
};

struct DeliveryLimits {
  size_t threads = 16;
  size_t suspects = 8;  // half: the others stay for targets that answer
  size_t per_host = 4;
  size_t per_target = 2;  // one slow answer does not stop the next message
  // Pending deliveries of all targets: with more, a target keeps only a few (deliverer.hpp).
  size_t pending = 200'000;
};

struct DeliveryPlan {
  std::vector<size_t> starts;        // indexes of lanes, each once, the longest due first
  std::optional<Instant> next = {};  // the first instant at which another start may be possible
};

// Ensures: with `starts` in flight, no limit is exceeded.
DeliveryPlan plan_deliveries(std::span<const Lane> lanes, const DeliveryLimits& limits,
                             Instant now);

// The number of attempts, as on AWS for endpoints of customers: two at once, ten 10 s apart, ten
// with growing pauses, and the rest 10 min apart, about five hours in all.
inline constexpr uint32_t kAttemptsMax = 50;

// Returns the pause after the failed attempt with that number, from 1. `jitter`: from 0 to 1;
// pauses are spread by a fifth in each direction, so that messages that failed together are not
// repeated together. Nothing: it was the last attempt.
std::optional<Duration> pause_after(uint32_t attempt, double jitter);

// Returns how long a lane is paused after that many failed attempts in a row.
Duration lane_pause(uint32_t failures);

}  // namespace trainyard::notify
