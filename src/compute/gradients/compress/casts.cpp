#include "gradients/compress/casts.hpp"

#include <algorithm>

#include "collectives/reduce/reduce.hpp"

namespace trainyard::gradients {
namespace {

// A block of products stays in the first-level cache until it is cast.
constexpr size_t kBlockElements = 1024;

}  // namespace

collectives::Type cast_type(Compression compression) {
  if (compression.kind == Compression::Kind::f16) return collectives::Type::f16;
  if (compression.kind == Compression::Kind::bf16) return collectives::Type::bf16;
  return collectives::Type::f32;
}

void narrow_scaled(collectives::Type type, const float* values, std::byte* bytes, size_t elements,
                   double factor) {
  if (factor == 1) return collectives::narrow(type, values, bytes, elements);
  float scaled[kBlockElements];
  for (size_t begin = 0; begin < elements; begin += kBlockElements) {
    const size_t size = std::min(kBlockElements, elements - begin);
    for (size_t i = 0; i < size; ++i) scaled[i] = values[begin + i] * float(factor);
    collectives::narrow(type, scaled, bytes + begin * bytes_of(type), size);
  }
}

void widen_scaled(collectives::Type type, const std::byte* bytes, float* values, size_t elements,
                  double factor) {
  for (size_t begin = 0; begin < elements; begin += kBlockElements) {
    const size_t size = std::min(kBlockElements, elements - begin);
    collectives::widen(type, bytes + begin * bytes_of(type), values + begin, size);
    if (factor == 1) continue;
    for (size_t i = 0; i < size; ++i) values[begin + i] *= float(factor);
  }
}

}  // namespace trainyard::gradients
