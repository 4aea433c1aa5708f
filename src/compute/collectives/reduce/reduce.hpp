// Combines the ranks' values of a range, element by element.
//
// The result of a reduction depends on its operands and their order alone, not on the processor: the vectorised
// kernels give the bits of the plain ones. (Which NaN results from several NaN is unspecified.)
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/types.hpp"

namespace trainyard::collectives {

// out[i] = ((operands[0][i] with operands[1][i]) with operands[2][i]) .., rounded to the type once, at the end.
// divisor > 0: what results is divided by it first (the last step of an average).
// Requires: at least one operand; each holds `elements` values; out may be one of them, else overlaps none.
void fold(Type type, Reduction reduction, std::byte* out, std::span<const std::byte* const> operands,
          size_t elements, int divisor = 0);

// data[i] *= factor. Floats of 32 bits and fewer are multiplied as float32, by the factor rounded to float32. Integers
// are multiplied as doubles and cut towards zero; what exceeds 64 bits becomes the nearest number that does not, and what
// exceeds the type wraps.
void scale(Type type, std::byte* data, size_t elements, double factor);

// f16 or bf16 to float32 and back, rounded to nearest, ties to even.
// Requires: type is f16 or bf16; the two do not overlap.
void widen(Type type, const std::byte* narrow, float* wide, size_t elements);
void narrow(Type type, const float* wide, std::byte* narrow, size_t elements);

// The kernels that this processor can run, the plainest first; fold() uses the last one.
struct Kernels {
  std::string_view name;
  void (*fold)(Type type, Reduction reduction, std::byte* out, const std::byte* const* operands,
               size_t operands_count, size_t elements, int divisor);
  void (*widen)(Type type, const std::byte* narrow, float* wide, size_t elements);
  void (*narrow)(Type type, const float* wide, std::byte* narrow, size_t elements);
};
std::vector<Kernels> runnable_kernels();

}  // namespace trainyard::collectives
