// Decides which deliveries are attempted now, and when failed deliveries are attempted again.
//
// A lane contains the pending deliveries of one target. Lanes share a few threads, so the number of
// simultaneous attempts is limited: `per_target` for a lane, `per_host` for the lanes of one host,
// and `suspects` for all suspect lanes (unconfirmed, or their last attempt failed). A target that
// hangs becomes suspect after its first attempt, and then delays only suspect targets.
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
  std::string_view host;  // equal for lanes whose targets are on one machine; "": none
  bool suspect = false;
  size_t in_flight = 0;
  std::optional<Instant> due = {};  // of its first pending delivery; nullopt: none is pending
  Instant paused_until = {};        // after failed attempts
};

struct DeliveryLimits {
  size_t threads = 16;
  size_t suspects = 8;  // half of the threads; the others stay free for targets that respond
  size_t per_host = 4;
  size_t per_target = 2;  // one slow response does not delay the next message
  // Pending deliveries of all targets. Beyond this limit, each target may have only a few
  // (deliverer.hpp).
  size_t pending = 200'000;
};

struct DeliveryPlan {
  std::vector<size_t> starts;        // distinct indexes of lanes, ordered by due time
  std::optional<Instant> next = {};  // the first instant at which another start may be possible
};

// Ensures: with `starts` in flight, no limit is exceeded.
DeliveryPlan plan_deliveries(std::span<const Lane> lanes, const DeliveryLimits& limits,
                             Instant now);

// The number of attempts of a delivery, as on AWS for endpoints of customers: after the first, two
// at once, ten 10 s apart, ten with growing pauses, and the rest 10 min apart; five hours in all.
inline constexpr uint32_t kAttemptsMax = 50;

// Returns the pause after the failed attempt with this number (from 1), or nullopt after the last
// attempt. `jitter`: from 0 to 1; it changes the pause by up to a fifth in each direction, so that
// messages that failed together are not retried together.
std::optional<Duration> pause_after(uint32_t attempt, double jitter);

// Returns the pause of a lane after this number of consecutive failed attempts.
Duration lane_pause(uint32_t failures);

}  // namespace trainyard::notify
