// Casts arrays of float32 to 16 bits and back, and multiplies each value by a factor.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>

#include "collectives/types.hpp"
#include "gradients/compress/compression.hpp"

namespace trainyard::gradients {

// Returns the type in which values are sent; Type::f32 if they are not cast.
collectives::Type cast_type(Compression compression);

// Computes narrow[i] = values[i] * factor, rounded to nearest; values that are too large for f16
// become infinite.
// Requires: type is f16 or bf16.
void narrow_scaled(collectives::Type type, const float* values, std::byte* narrow, size_t elements,
                   double factor);
// Computes values[i] = narrow[i] * factor.
void widen_scaled(collectives::Type type, const std::byte* narrow, float* values, size_t elements,
                  double factor);

}  // namespace trainyard::gradients
