// Declares the functions that are compiled for each kind of processor: the loops of kernels.hpp,
// and a pause for spin loops.
//
// Threads: pure functions. A function may be called only where the processor supports it.
#pragma once

#include <vector>

#include "collectives/reduce/float_formats.hpp"
#include "collectives/reduce/reduce.hpp"

namespace trainyard::collectives {

void reduce_plain(Type type, Reduction reduction, std::byte* out, const std::byte* const* operands,
                  size_t count, size_t elements, int divisor);

void widen_plain(Type type, const std::byte* narrow, float* wide, size_t elements);
void narrow_plain(Type type, const float* wide, std::byte* narrow, size_t elements);

// Adds the kernels in the folder of this architecture (x86/) that the machine can run.
void add_kernels_of_this_processor(std::vector<Kernels>& kernels);

// Pauses briefly within a spin loop, which leaves the core to its other hardware thread.
void relax_core();

}  // namespace trainyard::collectives
