// RateFloor decides how long a connection waits for a slow peer before it is ended.
//
// A peer starts with an allowance of time. Waiting for the peer reduces it, each transferred byte
// restores a part of it, and it never exceeds its initial value. A peer may therefore pause for
// this time, and over longer times it must transfer bytes at the minimum rate. Time that the server
// itself needs is not counted.
//
// Threads: a plain value. Errors: none. Units: microseconds, bytes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace trainyard::net {

class RateFloor {
 public:
  using Time = std::chrono::microseconds;

  // Requires: bytes_per_second_min > 0.
  RateFloor(Time allowance_max, uint64_t bytes_per_second_min)
      : allowance_max_(allowance_max),
        bytes_per_second_min_(bytes_per_second_min),
        left_(allowance_max) {}

  // Returns the limit of the next wait; zero if the peer has used up its allowance.
  Time allowance() const { return left_; }

  // Counts a wait, and the bytes that were transferred in it.
  void waited(Time time, uint64_t bytes) {
    // More bytes would restore the whole allowance in any case; the limit keeps the product small.
    const uint64_t counted = std::min(bytes, kBytesCountedMax);
    const Time earned(int64_t(counted * 1'000'000 / bytes_per_second_min_));
    left_ = std::clamp(left_ - std::max(time, Time(0)) + earned, Time(0), allowance_max_);
  }

 private:
  static constexpr uint64_t kBytesCountedMax = uint64_t{1} << 40;

  Time allowance_max_;
  uint64_t bytes_per_second_min_;
  Time left_;
};

}  // namespace trainyard::net
