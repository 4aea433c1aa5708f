#include <cpuid.h>

#include "collectives/reduce/processors.hpp"
#include "collectives/reduce/x86/reductions.hpp"

namespace trainyard::collectives {

namespace {

// clang 14 does not know this name in __builtin_cpu_supports. Support for avx2 implies that the
// system saves the wide registers.
bool converts_halves() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace

void add_kernels_of_this_processor(std::vector<Kernels>& kernels) {
  if (!__builtin_cpu_supports("avx2") || !converts_halves()) return;
  kernels.push_back({"avx2", reduce_avx2, widen_avx2, narrow_avx2});
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
    return;
  }
  kernels.push_back({"avx512", reduce_avx512, widen_avx512, narrow_avx512});
}

void relax_core() { __builtin_ia32_pause(); }

}  // namespace trainyard::collectives
