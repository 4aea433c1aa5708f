// float32 to 16 bits and back, many at a time, rounding to nearest, ties to even.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>

#include "collectives/compress/compression.hpp"
#include "collectives/types.hpp"

namespace trainyard::collectives {

// What values travel as; Type::f32 where they are not cast.
Type cast_type(Compression compression);

// narrow[i] = values[i] * factor, rounded once; what is too large for f16 becomes infinite.
// Requires: type is f16 or bf16.
void narrow(Type type, const float* values, std::byte* narrow, size_t elements, double factor = 1);
// values[i] = narrow[i] * factor
void widen(Type type, const std::byte* narrow, float* values, size_t elements, double factor = 1);

}  // namespace trainyard::collectives
