#include "forest/trees/boxes.hpp"

#include <algorithm>

namespace trainyard::forest {
namespace {

constexpr size_t kLanes = 8;  // partial sums, which are added at the end in a fixed order

double total_of(const double (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Returns the distance of a value from a range. At most one of the two differences is positive.
double distance(float low, float high, float value) {
  const double above = double(value) - double(high), below = double(low) - double(value);
  return (above > 0 ? above : 0) + (below > 0 ? below : 0);
}

}  // namespace

double excess_of(const float* low, const float* high, const float* point, size_t dimensions) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= dimensions; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += distance(low[i + lane], high[i + lane], point[i + lane]);
  for (size_t lane = 0; i < dimensions; ++i, ++lane)
    lanes[lane] += distance(low[i], high[i], point[i]);
  return total_of(lanes);
}

double ranges_of(const float* low, const float* high, size_t dimensions) {
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= dimensions; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += double(high[i + lane]) - double(low[i + lane]);
  for (size_t lane = 0; i < dimensions; ++i, ++lane)
    lanes[lane] += double(high[i]) - double(low[i]);
  return total_of(lanes);
}

void extend(float* low, float* high, const float* point, size_t dimensions) {
  for (size_t i = 0; i < dimensions; ++i) {
    low[i] = std::min(low[i], point[i]);
    high[i] = std::max(high[i], point[i]);
  }
}

void unite(float* low, float* high, const float* low_a, const float* high_a, const float* low_b,
           const float* high_b, size_t dimensions) {
  for (size_t i = 0; i < dimensions; ++i) {
    low[i] = std::min(low_a[i], low_b[i]);
    high[i] = std::max(high_a[i], high_b[i]);
  }
}

bool is_strictly_inside(const float* low, const float* high, const float* point,
                        size_t dimensions) {
  for (size_t i = 0; i < dimensions; ++i)
    if (point[i] <= low[i] || point[i] >= high[i]) return false;
  return true;
}

}  // namespace trainyard::forest
