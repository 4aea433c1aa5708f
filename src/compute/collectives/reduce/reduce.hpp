// Reduces the ranks' values of a range, element by element.
//
// A result depends only on the operands and their order, not on the processor: the vectorised
// kernels give the same bits as the plain ones. (The result of a reduction of several NaN is an
// unspecified NaN.)
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/types.hpp"

namespace trainyard::collectives {

// out[i] = ((operands[0][i] with operands[1][i]) with operands[2][i]) .., rounded to the type once,
// at the end. If divisor > 0, the result is divided by it before it is rounded (the last step of an
// average).
// Requires: at least one operand; each holds `elements` values; out may be one of the operands,
// else it overlaps none of them.
void reduce_values(Type type, Reduction reduction, std::byte* out,
                   std::span<const std::byte* const> operands, size_t elements, int divisor = 0);

// Computes data[i] *= factor. Floats of 32 bits and fewer are multiplied as float32, by the factor
// rounded to float32. Integers are multiplied as doubles and truncated towards zero. A product
// outside of 64 bits becomes the nearest number inside, and one outside of the type wraps.
void scale(Type type, std::byte* data, size_t elements, double factor);

// widen() converts f16 or bf16 to float32, and narrow() converts back, rounding to nearest, ties to
// even.
// Requires: type is f16 or bf16; the two ranges do not overlap.
void widen(Type type, const std::byte* narrow, float* wide, size_t elements);
void narrow(Type type, const float* wide, std::byte* narrow, size_t elements);

// Kernels are the loops for one kind of processor. runnable_kernels() returns those that this
// processor can run, plain loops first; reduce_values() uses the last.
struct Kernels {
  std::string_view name;
  void (*reduce_values)(Type type, Reduction reduction, std::byte* out,
                        const std::byte* const* operands, size_t operands_count, size_t elements,
                        int divisor);
  void (*widen)(Type type, const std::byte* narrow, float* wide, size_t elements);
  void (*narrow)(Type type, const float* wide, std::byte* narrow, size_t elements);
};
std::vector<Kernels> runnable_kernels();

}  // namespace trainyard::collectives
