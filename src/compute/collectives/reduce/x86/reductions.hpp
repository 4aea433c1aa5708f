// Declares the loops of kernels.hpp for x86 processors with AVX2 and F16C, and for those with
// AVX-512.
//
// Threads: pure functions. Each may be called only where the processor can run it.
#pragma once

#include <cstddef>

#include "collectives/types.hpp"

namespace trainyard::collectives {

void reduce_avx2(Type type, Reduction reduction, std::byte* out, const std::byte* const* operands,
                 size_t count, size_t elements, int divisor);
void reduce_avx512(Type type, Reduction reduction, std::byte* out, const std::byte* const* operands,
                   size_t count, size_t elements, int divisor);
void widen_avx2(Type type, const std::byte* narrow, float* wide, size_t elements);
void narrow_avx2(Type type, const float* wide, std::byte* narrow, size_t elements);
void widen_avx512(Type type, const std::byte* narrow, float* wide, size_t elements);
void narrow_avx512(Type type, const float* wide, std::byte* narrow, size_t elements);

}  // namespace trainyard::collectives
