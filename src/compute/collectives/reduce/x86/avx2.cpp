#include <immintrin.h>

#include "collectives/reduce/kernels.hpp"
#include "collectives/reduce/x86/reductions.hpp"

namespace trainyard::collectives {
namespace {

struct F16cHalves {
  using Narrow = uint16_t;
  static constexpr bool kOneByOne = false;
  static void widen(const uint16_t* from, float* to, size_t size) {
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
      _mm256_storeu_ps(
          to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    }
    for (; i < size; ++i) to[i] = formats::from_f16(from[i]);
  }
  static void narrow(const float* from, uint16_t* to, size_t size) {
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
    for (; i < size; ++i) to[i] = formats::to_f16(from[i]);
  }
};

}  // namespace

void reduce_avx2(Type type, Reduction reduction, std::byte* out, const std::byte* const* operands,
                 size_t count, size_t elements, int divisor) {
  kernel_for<F16cHalves>(type, reduction)(out, operands, count, elements, divisor);
}

void widen_avx2(Type type, const std::byte* narrow, float* wide, size_t elements) {
  widen_with<F16cHalves>(type, narrow, wide, elements);
}
void narrow_avx2(Type type, const float* wide, std::byte* narrow, size_t elements) {
  narrow_with<F16cHalves>(type, wide, narrow, elements);
}

}  // namespace trainyard::collectives
