#include "gradients/adasum/pairs.hpp"

#include "base/check.hpp"
#include "collectives/reduce/float_formats.hpp"
#include "gradients/adasum/adasum.hpp"

namespace trainyard::gradients {
namespace {

struct F64 {
  using Number = double;
  static double wide(double value) { return value; }
  static double narrow(double value) { return value; }
};
struct F32 {
  using Number = float;
  static double wide(float value) { return double(value); }
  static float narrow(double value) { return float(value); }
};
struct F16 {
  using Number = uint16_t;
  static double wide(uint16_t bits) { return double(collectives::formats::from_f16(bits)); }
  static uint16_t narrow(double value) { return collectives::formats::to_f16(float(value)); }
};
struct Bf16 {
  using Number = uint16_t;
  static double wide(uint16_t bits) { return double(collectives::formats::from_bf16(bits)); }
  static uint16_t narrow(double value) { return collectives::formats::to_bf16(float(value)); }
};

template <class Format>
Dots dots(const std::byte* a_bytes, const std::byte* b_bytes, size_t elements) {
  const auto* a = reinterpret_cast<const typename Format::Number*>(a_bytes);
  const auto* b = reinterpret_cast<const typename Format::Number*>(b_bytes);
  double ab[kAdasumLanes]{}, aa[kAdasumLanes]{}, bb[kAdasumLanes]{};
  size_t i = 0;
  for (; i + kAdasumLanes <= elements; i += kAdasumLanes) {
    for (size_t lane = 0; lane < kAdasumLanes; ++lane) {
      const double left = Format::wide(a[i + lane]), right = Format::wide(b[i + lane]);
      ab[lane] += left * right;
      aa[lane] += left * left;
      bb[lane] += right * right;
    }
  }
  for (size_t lane = 0; i < elements; ++i, ++lane) {
    const double left = Format::wide(a[i]), right = Format::wide(b[i]);
    ab[lane] += left * right;
    aa[lane] += left * left;
    bb[lane] += right * right;
  }
  Dots sum;
  for (size_t lane = 0; lane < kAdasumLanes; ++lane) {
    sum.ab += ab[lane];
    sum.aa += aa[lane];
    sum.bb += bb[lane];
  }
  return sum;
}

template <class Format>
void combine_by(double of_a, double of_b, const std::byte* a_bytes, const std::byte* b_bytes,
                std::byte* out_bytes, size_t elements) {
  using Number = typename Format::Number;
  const auto* a = reinterpret_cast<const Number*>(a_bytes);
  const auto* b = reinterpret_cast<const Number*>(b_bytes);
  auto* out = reinterpret_cast<Number*>(out_bytes);
  for (size_t i = 0; i < elements; ++i)
    out[i] = Format::narrow(of_a * Format::wide(a[i]) + of_b * Format::wide(b[i]));
}

// A zero vector has no direction, and its share of the result is zero.
double share(double ab, double norm) { return norm > 0 ? 1 - ab / norm / 2 : 1; }

}  // namespace

Dots dots_of(collectives::Type type, const std::byte* a, const std::byte* b, size_t elements) {
  switch (type) {
    case collectives::Type::f64:
      return dots<F64>(a, b, elements);
    case collectives::Type::f32:
      return dots<F32>(a, b, elements);
    case collectives::Type::f16:
      return dots<F16>(a, b, elements);
    default:
      CHECK(type == collectives::Type::bf16, "the type has a dot product");
      return dots<Bf16>(a, b, elements);
  }
}

void combine(collectives::Type type, const Dots& dots, const std::byte* a, const std::byte* b,
             std::byte* out, size_t elements) {
  const double of_a = share(dots.ab, dots.aa);
  const double of_b = share(dots.ab, dots.bb);
  switch (type) {
    case collectives::Type::f64:
      return combine_by<F64>(of_a, of_b, a, b, out, elements);
    case collectives::Type::f32:
      return combine_by<F32>(of_a, of_b, a, b, out, elements);
    case collectives::Type::f16:
      return combine_by<F16>(of_a, of_b, a, b, out, elements);
    default:
      CHECK(type == collectives::Type::bf16, "values of this type can be combined");
      return combine_by<Bf16>(of_a, of_b, a, b, out, elements);
  }
}

}  // namespace trainyard::gradients
