#include "parallel/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.hpp"

namespace trainyard::parallel {
namespace {

// Returns the fraction of the decay that is done, from 0 to 1.
double progress(const Schedule& schedule, int64_t step) {
  CHECK(schedule.steps > schedule.warm_up, "a decay needs steps after the warm-up");
  const double done = double(step - schedule.warm_up) / double(schedule.steps - schedule.warm_up);
  return std::clamp(done, 0.0, 1.0);
}

}  // namespace

double Schedule::rate(int64_t step) const {
  CHECK(step >= 0, "steps count from 0");
  if (step < warm_up) return base * double(step + 1) / double(warm_up);
  switch (decay) {
    case Decay::constant:
      return base;
    case Decay::milestones: {
      const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step);
      return base * std::pow(factor, double(passed - milestones.begin()));
    }
    case Decay::cosine:
      return last + (base - last) * 0.5 * (1 + std::cos(std::numbers::pi * progress(*this, step)));
    case Decay::polynomial:
      return last + (base - last) * std::pow(1 - progress(*this, step), power);
  }
  return base;
}

}  // namespace trainyard::parallel
