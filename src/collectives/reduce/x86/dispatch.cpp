#include "collectives/reduce/processors.hpp"
#include "collectives/reduce/x86/folds.hpp"

namespace trainyard::collectives {

void add_kernels_of_this_processor(std::vector<Kernels>& kernels) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("f16c")) return;
  kernels.push_back({"avx2", fold_avx2});
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
    return;
  }
  kernels.push_back({"avx512", fold_avx512});
}

void relax_core() { __builtin_ia32_pause(); }

}  // namespace trainyard::collectives
