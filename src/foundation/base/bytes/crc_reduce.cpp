#include "base/bytes/crc_reduce.hpp"

#include "base/check.hpp"

#if defined(__x86_64__)

#include <tmmintrin.h>
#include <wmmintrin.h>

namespace trainyard {
namespace {

// The 16 bytes from index n on shuffle the first n bytes of a block to its end, with zeros before.
alignas(16) constexpr uint8_t kToEnd[32] = {
    0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15};

__m128i load(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }

}  // namespace

const bool kReducesCrc = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("ssse3");

__attribute__((target("pclmul,ssse3"))) ReducedBytes reduce_crc(
    uint64_t sum, std::string_view bytes, const ReductionConstants& constants) {
  const __m128i factors = _mm_set_epi64x(static_cast<long long>(constants.second),
                                         static_cast<long long>(constants.first));
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  // The register is added to the first bytes, of which some may be in the second block.
  const size_t begin = bytes.size() % 16;
  __m128i block =
      _mm_shuffle_epi8(_mm_xor_si128(load(at), _mm_cvtsi64_si128(static_cast<long long>(sum))),
                       load(kToEnd + begin));
  __m128i rest = _mm_cvtsi64_si128(static_cast<long long>(begin < 8 ? sum >> (8 * begin) : 0));
  for (at += begin; at != end; at += 16) {
    const __m128i next = _mm_xor_si128(load(at), rest);
    rest = _mm_setzero_si128();
    block = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00),
                                        _mm_clmulepi64_si128(block, factors, 0x11)),
                          next);
  }
  ReducedBytes reduced;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(&reduced), block);
  return reduced;
}

}  // namespace trainyard

#else

namespace trainyard {

const bool kReducesCrc = false;

ReducedBytes reduce_crc(uint64_t, std::string_view, const ReductionConstants&) {
  CHECK(false, "required of the caller");
}

}  // namespace trainyard

#endif
