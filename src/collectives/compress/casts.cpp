#include "collectives/compress/casts.hpp"

#include "base/check.hpp"
#include "collectives/reduce/float_formats.hpp"

namespace trainyard::collectives {
namespace {

template <uint16_t (*to)(float)>
void narrow_by(const float* values, uint16_t* narrow, size_t elements, float factor) {
  for (size_t i = 0; i < elements; ++i) narrow[i] = to(values[i] * factor);
}
template <float (*from)(uint16_t)>
void widen_by(const uint16_t* narrow, float* values, size_t elements, float factor) {
  for (size_t i = 0; i < elements; ++i) values[i] = from(narrow[i]) * factor;
}

}  // namespace

Type cast_type(Compression compression) {
  if (compression.kind == Compression::Kind::f16) return Type::f16;
  if (compression.kind == Compression::Kind::bf16) return Type::bf16;
  return Type::f32;
}

void narrow(Type type, const float* values, std::byte* bytes, size_t elements, double factor) {
  CHECK(type == Type::f16 || type == Type::bf16, "there is a cast to this type");
  auto* out = reinterpret_cast<uint16_t*>(bytes);
  if (type == Type::f16) return narrow_by<formats::to_f16>(values, out, elements, float(factor));
  narrow_by<formats::to_bf16>(values, out, elements, float(factor));
}

void widen(Type type, const std::byte* bytes, float* values, size_t elements, double factor) {
  CHECK(type == Type::f16 || type == Type::bf16, "there is a cast from this type");
  const auto* in = reinterpret_cast<const uint16_t*>(bytes);
  if (type == Type::f16) return widen_by<formats::from_f16>(in, values, elements, float(factor));
  widen_by<formats::from_bf16>(in, values, elements, float(factor));
}

}  // namespace trainyard::collectives
