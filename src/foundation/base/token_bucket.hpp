// Decides whether one more request fits a rate.
//
// A bucket holds up to `burst` tokens and gains `per_second` of them; a request takes one, or is refused.
//
// Threads: a plain value. Errors: none. Units: monotonic nanoseconds, whose zero means nothing.
#pragma once

#include <algorithm>
#include <chrono>

namespace trainyard {

class TokenBucket {
 public:
  using Time = std::chrono::nanoseconds;

  // Full at first. Requires: per_second > 0, burst >= 1.
  TokenBucket(double per_second, double burst, Time now)
      : per_second_(per_second), burst_(burst), tokens_(burst), updated_(now) {}

  // Another rate from now on; what was saved stays, up to the new burst.
  void change(double per_second, double burst, Time now) {
    refill(now);
    per_second_ = per_second;
    burst_ = burst;
    tokens_ = std::min(tokens_, burst_);
  }

  // False: the rate is exceeded, and nothing is taken.
  bool take(Time now) {
    refill(now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

  bool is_full(Time now) {
    refill(now);
    return tokens_ >= burst_;
  }

 private:
  void refill(Time now) {
    if (now <= updated_) return;
    tokens_ = std::min(burst_, tokens_ + std::chrono::duration<double>(now - updated_).count() * per_second_);
    updated_ = now;
  }

  double per_second_, burst_, tokens_;
  Time updated_;
};

}  // namespace trainyard
