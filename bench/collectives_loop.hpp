// Measures the time of a collective operation, in the same way for our collectives and for every
// peer.
//
// Before each round the rank rewrites its buffer, since a buffer that is in no cache, or was never
// written, would give times that training never sees. Then all ranks pass a barrier, and the
// operation alone is timed.
//
// Threads: one rank each. Units: microseconds.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace trainyard::bench {

struct Loop {
  int warm_up = 5;
  int rounds = 50;

  // Returns enough rounds for a stable median within a second or two.
  static Loop for_bytes(size_t bytes) {
    if (bytes <= 65536) return {200, 2000};
    if (bytes <= (size_t{4} << 20)) return {10, 100};
    return {3, 20};
  }
};

// Returns the median time of an operation on this rank.
template <class Rewrite, class Barrier, class Operate>
double median_microseconds(Loop loop, const Rewrite& rewrite, const Barrier& barrier,
                           const Operate& operate) {
  std::vector<double> times;
  for (int round = 0; round < loop.warm_up + loop.rounds; ++round) {
    rewrite(round);
    barrier();
    const auto began = std::chrono::steady_clock::now();
    operate();
    const auto ended = std::chrono::steady_clock::now();
    if (round >= loop.warm_up)
      times.push_back(std::chrono::duration<double, std::micro>(ended - began).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

inline void print_microseconds(const char* side, double microseconds) {
  std::printf("{\"side\": \"%s\", \"microseconds\": %.3f}\n", side, microseconds);
  std::fflush(stdout);
}

}  // namespace trainyard::bench
