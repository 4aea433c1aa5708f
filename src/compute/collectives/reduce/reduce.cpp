#include "collectives/reduce/reduce.hpp"

#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/enum_table.hpp"
#include "collectives/reduce/processors.hpp"

namespace trainyard::collectives {
namespace {

template <class Number>
void scale_floats(std::byte* data, size_t elements, Number factor) {
  auto* numbers = reinterpret_cast<Number*>(data);
  for (size_t i = 0; i < elements; ++i) numbers[i] *= factor;
}

int64_t cut(double value) {
  constexpr double limit = 9223372036854775808.0;  // 2^63
  if (std::isnan(value)) return 0;
  if (value >= limit) return std::numeric_limits<int64_t>::max();
  return value < -limit ? std::numeric_limits<int64_t>::min() : int64_t(value);
}

template <class Integer>
void scale_integers(std::byte* data, size_t elements, double factor) {
  auto* numbers = reinterpret_cast<Integer*>(data);
  for (size_t i = 0; i < elements; ++i) numbers[i] = Integer(cut(double(numbers[i]) * factor));
}

template <class Narrow, float (*widen)(Narrow), Narrow (*narrow)(float)>
void scale_narrow(std::byte* data, size_t elements, double factor) {
  auto* numbers = reinterpret_cast<Narrow*>(data);
  for (size_t i = 0; i < elements; ++i) numbers[i] = narrow(widen(numbers[i]) * float(factor));
}

constexpr EnumTable<Type> kTypeNames{"type",
                                     {{Type::f64, "f64"},
                                      {Type::f32, "f32"},
                                      {Type::f16, "f16"},
                                      {Type::bf16, "bf16"},
                                      {Type::f8e4m3, "f8e4m3"},
                                      {Type::f8e5m2, "f8e5m2"},
                                      {Type::i64, "i64"},
                                      {Type::i32, "i32"},
                                      {Type::i16, "i16"},
                                      {Type::i8, "i8"},
                                      {Type::u8, "u8"},
                                      {Type::boolean, "bool"}}};
static_assert(kEnumerators<Type> == kTypesCount);

constexpr EnumTable<Reduction> kReductionNames{"reduction",
                                               {{Reduction::sum, "sum"},
                                                {Reduction::average, "average"},
                                                {Reduction::minimum, "minimum"},
                                                {Reduction::maximum, "maximum"},
                                                {Reduction::product, "product"},
                                                {Reduction::bits_and, "bits_and"},
                                                {Reduction::bits_or, "bits_or"},
                                                {Reduction::bits_xor, "bits_xor"}}};
static_assert(kEnumerators<Reduction> == kReductionsCount);

}  // namespace

std::string_view to_string(Type type) { return kTypeNames.text(type); }
std::string_view to_string(Reduction reduction) { return kReductionNames.text(reduction); }

void reduce_values(Type type, Reduction reduction, std::byte* out,
                   std::span<const std::byte* const> operands, size_t elements, int divisor) {
  static const auto best = runnable_kernels().back().reduce_values;
  CHECK(!operands.empty(), "a reduction has operands");
  CHECK(exists(type, reduction), "the type supports the reduction");
  // a later step divides
  if (divisor == 0 && reduction == Reduction::average) reduction = Reduction::sum;
  best(type, reduction, out, operands.data(), operands.size(), elements, divisor);
}

void widen(Type type, const std::byte* narrow, float* wide, size_t elements) {
  static const auto best = runnable_kernels().back().widen;
  CHECK(type == Type::f16 || type == Type::bf16, "there is such a cast");
  best(type, narrow, wide, elements);
}

void narrow(Type type, const float* wide, std::byte* narrow, size_t elements) {
  static const auto best = runnable_kernels().back().narrow;
  CHECK(type == Type::f16 || type == Type::bf16, "there is such a cast");
  best(type, wide, narrow, elements);
}

void scale(Type type, std::byte* data, size_t elements, double factor) {
  using namespace formats;
  switch (type) {
    case Type::f64:
      return scale_floats(data, elements, factor);
    case Type::f32:
      return scale_floats(data, elements, float(factor));
    case Type::f16:
      return scale_narrow<uint16_t, from_f16, to_f16>(data, elements, factor);
    case Type::bf16:
      return scale_narrow<uint16_t, from_bf16, to_bf16>(data, elements, factor);
    case Type::f8e4m3:
      return scale_narrow<uint8_t, from_f8e4m3, to_f8e4m3>(data, elements, factor);
    case Type::f8e5m2:
      return scale_narrow<uint8_t, from_f8e5m2, to_f8e5m2>(data, elements, factor);
    case Type::i64:
      return scale_integers<int64_t>(data, elements, factor);
    case Type::i32:
      return scale_integers<int32_t>(data, elements, factor);
    case Type::i16:
      return scale_integers<int16_t>(data, elements, factor);
    case Type::i8:
      return scale_integers<int8_t>(data, elements, factor);
    case Type::u8:
    case Type::boolean:
      return scale_integers<uint8_t>(data, elements, factor);
  }
}

std::vector<Kernels> runnable_kernels() {
  std::vector<Kernels> kernels{{"plain", reduce_plain, widen_plain, narrow_plain}};
  add_kernels_of_this_processor(kernels);
  return kernels;
}

}  // namespace trainyard::collectives
