// Computes dot products and the adaptive sum of two gradient vectors. Private to adasum/.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>

#include "collectives/types.hpp"

namespace trainyard::gradients {

struct Dots {
  double ab = 0;
  double aa = 0;
  double bb = 0;
};

// Computes dot products, and adds in the order that adasum.hpp defines.
Dots dots_of(collectives::Type type, const std::byte* a, const std::byte* b, size_t elements);

// Computes out[i] = (1 - ab / (2 aa)) a[i] + (1 - ab / (2 bb)) b[i]; out may be a or b.
void combine(collectives::Type type, const Dots& dots, const std::byte* a, const std::byte* b,
             std::byte* out, size_t elements);

}  // namespace trainyard::gradients
