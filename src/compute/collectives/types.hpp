// What is reduced, and how: the types of numbers that a group knows.
//
// Types of 16 and 8 bits are added as float32 and rounded when a fold ends (plan.hpp says where folds end);
// integers wrap; a boolean is 0 or 1, sum and maximum are "or", product and minimum are "and".
// The 8-bit floats are those of OCP's OFP8: e4m3 has no infinity, what is too large becomes NaN; e5m2 has one.
// An average of integers is divided towards zero; of booleans there is none. Bits are combined of integers and
// booleans alone.
// Minimum and maximum keep the value that came first in the order of the fold when two are equal or one is NaN.
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard::collectives {

enum class Type : uint8_t { f64, f32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i16, i8, u8, boolean };
inline constexpr int types_count = 12;

enum class Reduction : uint8_t { sum, average, minimum, maximum, product, bits_and, bits_or, bits_xor };
inline constexpr int reductions_count = 8;

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
