#include "collectives/reduce/kernels.hpp"
#include "collectives/reduce/processors.hpp"

namespace trainyard::collectives {
namespace {

struct PlainHalves {
  using Narrow = uint16_t;
  static constexpr bool kOneByOne = false;
  static void widen(const uint16_t* from, float* to, size_t size) {
    for (size_t i = 0; i < size; ++i) to[i] = formats::from_f16(from[i]);
  }
  static void narrow(const float* from, uint16_t* to, size_t size) {
    for (size_t i = 0; i < size; ++i) to[i] = formats::to_f16(from[i]);
  }
};

}  // namespace

void reduce_plain(Type type, Reduction reduction, std::byte* out, const std::byte* const* operands,
                  size_t count, size_t elements, int divisor) {
  kernel_for<PlainHalves>(type, reduction)(out, operands, count, elements, divisor);
}

void widen_plain(Type type, const std::byte* narrow, float* wide, size_t elements) {
  widen_with<PlainHalves>(type, narrow, wide, elements);
}
void narrow_plain(Type type, const float* wide, std::byte* narrow, size_t elements) {
  narrow_with<PlainHalves>(type, wide, narrow, elements);
}

}  // namespace trainyard::collectives
