// TokenBucket decides whether a rate limit allows one more request.
//
// A bucket holds up to `burst` tokens and gains `per_second` of them. A request takes one, or is
// rejected.
//
// Threads: a plain value. Errors: none. Units: monotonic nanoseconds, whose zero is arbitrary.
#pragma once

#include <algorithm>
#include <chrono>

namespace trainyard {

class TokenBucket {
 public:
  using Time = std::chrono::nanoseconds;

  // Starts full. Requires: per_second > 0, burst >= 1.
  TokenBucket(double per_second, double burst, Time now)
      : per_second_(per_second), burst_(burst), tokens_(burst), updated_(now) {}

  // Changes the rate from now on. Saved tokens stay, up to the new burst.
  void change(double per_second, double burst, Time now) {
    refill(now);
    per_second_ = per_second;
    burst_ = burst;
    tokens_ = std::min(tokens_, burst_);
  }

  // Takes a token and returns true; if none is left, returns false.
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
    tokens_ = std::min(
        burst_, tokens_ + std::chrono::duration<double>(now - updated_).count() * per_second_);
    updated_ = now;
  }

  double per_second_, burst_, tokens_;
  Time updated_;
};

}  // namespace trainyard
