// Decides how long a connection waits for a slow peer before it is ended.
//
// A peer starts with an allowance of time. Time spent waiting for the peer reduces it, each byte
// that moves restores some, and it never grows past its start: so a peer may pause for that long,
// and over any longer time it must move at the lowest rate. Time that the server itself needs is
// not counted.
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

  // The longest permitted next wait; zero when the peer has used up its time.
  Time allowance() const { return left_; }

  // Counts a wait, and the bytes moved in it.
  void waited(Time time, uint64_t bytes) {
    // Past this many bytes the allowance is full again, and the product below stays small.
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
