// Defines the element types and the reductions of a group.
//
// Floats of 16 and 8 bits are added as float32 and rounded at the end of a reduction step (plan.hpp
// defines the steps). Integers wrap. A boolean is 0 or 1: sum and maximum are "or", product and
// minimum are "and". The 8-bit floats are OCP's OFP8: e5m2 has an infinity; e4m3 does not, and
// values that are too large become NaN. An average of integers is rounded towards zero; booleans
// have no average. Bitwise reductions exist for integers and booleans only. Minimum and maximum
// keep the value that is first in the order of the reduction if two are equal or one is NaN.
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard::collectives {

enum class Type : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u8, boolean };
inline constexpr int kTypesCount = 12;

enum class Reduction : uint8_t {
  sum,
  average,
  minimum,
  maximum,
  product,
  bits_and,
  bits_or,
  bits_xor
};
inline constexpr int kReductionsCount = 8;

constexpr size_t bytes_of(Type type) {
  switch (type) {
    case Type::f64:
    case Type::i64:
      return 8;
    case Type::f32:
    case Type::i32:
      return 4;
    case Type::f16:
    case Type::bf16:
    case Type::i16:
      return 2;
    default:
      return 1;
  }
}

constexpr bool is_integer(Type type) { return type >= Type::i64 && type <= Type::u8; }
constexpr bool exists(Type type, Reduction reduction) {
  if (reduction >= Reduction::bits_and) return is_integer(type) || type == Type::boolean;
  return type != Type::boolean || reduction != Reduction::average;
}

std::string_view to_string(Type type);
std::string_view to_string(Reduction reduction);

}  // namespace trainyard::collectives
