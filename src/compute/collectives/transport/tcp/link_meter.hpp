// Measures for how long the bytes of a link were on their way, from the kernel's counters.
//
// The kernel counts a connection as busy while a byte is not acknowledged, which includes the time
// in which the receiver's machine has no processor for it. So a link is taken as busy no longer
// than its bytes need at the highest rate at which it delivered in the last seconds: noise lowers
// single rates, and a slow link all of them. (BBR estimates the bandwidth of a path by the same
// windowed maximum.)
//
// Threads: confined to one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>

#include "collectives/transport.hpp"

namespace trainyard::collectives {

// The kernel's counters of a connection, since it was made.
struct LinkCounters {
  std::chrono::nanoseconds busy{};
  uint64_t bytes = 0;  // acknowledged
  uint64_t rate = 0;   // bytes per second, of the last delivery; 0: not known
};

class LinkMeter {
 public:
  // A rate counts for this time at least, and for twice this time at most.
  static constexpr std::chrono::seconds kRateWindow{3};

  explicit LinkMeter(int peer) { load_.peer = peer; }

  // Adds what was sent since the last call. `now` and the counters do not decrease.
  void add(const LinkCounters& counters, std::chrono::steady_clock::time_point now);
  const LinkLoad& load() const { return load_; }

 private:
  void add_rate(uint64_t rate, std::chrono::steady_clock::time_point now);

  LinkLoad load_;
  LinkCounters last_;
  // The highest rates of the window that began at rates_since_, and of the one before.
  uint64_t rate_max_ = 0;
  uint64_t rate_max_before_ = 0;
  std::chrono::steady_clock::time_point rates_since_;
};

}  // namespace trainyard::collectives
