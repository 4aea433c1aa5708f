// Computes the learning rate of a step: a warm-up, then a decay.
//
// The rate depends only on the step, so it is the same on every rank and after every restart.
//
// Threads: plain values, pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard::parallel {

enum class Decay : uint8_t {
  constant,
  milestones,  // multiplied by `factor` at each milestone
  cosine,      // to `last` along half a cosine
  polynomial,  // to `last` along (1 - progress) ^ power
};

struct Schedule {
  double base = 0.1;  // the rate after the warm-up
  // The rate rises linearly to `base` in the first steps: step i has base * (i + 1) / warm_up.
  int64_t warm_up = 0;  // steps
  Decay decay = Decay::constant;
  int64_t steps = 0;                // steps of the whole training, for cosine and polynomial
  std::vector<int64_t> milestones;  // steps, ascending
  double factor = 0.1;
  double power = 0.9;
  double last = 0;

  // Requires: step >= 0; with cosine and polynomial, steps > warm_up. Steps beyond the last have
  // its rate.
  double rate(int64_t step) const;
};

}  // namespace trainyard::parallel
