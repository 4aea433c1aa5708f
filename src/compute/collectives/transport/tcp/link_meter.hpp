// A LinkMeter computes from the kernel's counters for how long a link was busy.
//
// The kernel counts a connection as busy while a byte is not acknowledged. That includes time in
// which the receiver's machine has no free processor. So the busy time is limited to the time that
// the bytes need at the highest rate of the last seconds: noise lowers only single rates, and a
// slow link lowers all. (BBR estimates the bandwidth of a path by the same windowed maximum.)
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
  // A rate is used for at least this time, and for at most twice this time.
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
