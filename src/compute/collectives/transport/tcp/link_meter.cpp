#include "collectives/transport/tcp/link_meter.hpp"

#include <algorithm>

namespace trainyard::collectives {

void LinkMeter::add_rate(uint64_t rate, std::chrono::steady_clock::time_point now) {
  if (now - rates_since_ >= kRateWindow) {
    rate_max_before_ = now - rates_since_ < 2 * kRateWindow ? rate_max_ : 0;
    rate_max_ = 0;
    rates_since_ = now;
  }
  rate_max_ = std::max(rate_max_, rate);
}

void LinkMeter::add(const LinkCounters& counters, std::chrono::steady_clock::time_point now) {
  add_rate(counters.rate, now);
  auto busy = std::max(counters.busy - last_.busy, std::chrono::nanoseconds(0));
  const uint64_t bytes = counters.bytes - std::min(last_.bytes, counters.bytes);
  if (const uint64_t rate = std::max(rate_max_, rate_max_before_); rate > 0)
    busy = std::min(busy, std::chrono::nanoseconds(int64_t(double(bytes) / double(rate) * 1e9)));
  load_.busy += busy;
  load_.bytes = counters.bytes;
  last_ = counters;
}

}  // namespace trainyard::collectives
