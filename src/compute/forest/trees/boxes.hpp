// Computes with bounding boxes. A box is two arrays of floats: the smallest and the largest value
// by dimension.
//
// Differences are computed in double, which is exact enough for any finite floats. The order of
// additions depends only on the number of dimensions, so every processor gives the same bits.
//
// Threads: pure functions. Errors: none. Values must be finite.
#pragma once

#include <cstddef>

namespace trainyard::forest {

// Returns the sum over dimensions of the distance between point and box, which is how much the sum
// of ranges grows when the point is added. Exactly 0 if the point is inside.
double excess_of(const float* low, const float* high, const float* point, size_t dimensions);

// Returns the sum of ranges.
double ranges_of(const float* low, const float* high, size_t dimensions);

// Adds a point to a box.
void extend(float* low, float* high, const float* point, size_t dimensions);

// Makes the box that contains two boxes.
void unite(float* low, float* high, const float* low_a, const float* high_a, const float* low_b,
           const float* high_b, size_t dimensions);

// Returns true if the point touches no side of the box.
bool is_strictly_inside(const float* low, const float* high, const float* point, size_t dimensions);

}  // namespace trainyard::forest
