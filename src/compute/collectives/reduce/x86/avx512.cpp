#include <immintrin.h>

#include "collectives/reduce/kernels.hpp"
#include "collectives/reduce/x86/reductions.hpp"

namespace trainyard::collectives {
namespace {

struct WideHalves {
  using Narrow = uint16_t;
  static constexpr bool kOneByOne = false;
  static void widen(const uint16_t* from, float* to, size_t size) {
    size_t i = 0;
    for (; i + 16 <= size; i += 16) {
      _mm512_storeu_ps(to + i,
                       _mm512_maskz_cvtph_ps(
                           0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i))));
    }
    for (; i < size; ++i) to[i] = formats::from_f16(from[i]);
  }
  static void narrow(const float* from, uint16_t* to, size_t size) {
    size_t i = 0;
    for (; i + 16 <= size; i += 16) {
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(to + i),
          _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < size; ++i) to[i] = formats::to_f16(from[i]);
  }
};

}  // namespace

void reduce_avx512(Type type, Reduction reduction, std::byte* out, const std::byte* const* operands,
                   size_t count, size_t elements, int divisor) {
  kernel_for<WideHalves>(type, reduction)(out, operands, count, elements, divisor);
}

void widen_avx512(Type type, const std::byte* narrow, float* wide, size_t elements) {
  widen_with<WideHalves>(type, narrow, wide, elements);
}
void narrow_avx512(Type type, const float* wide, std::byte* narrow, size_t elements) {
  narrow_with<WideHalves>(type, wide, narrow, elements);
}

}  // namespace trainyard::collectives
