// Implements the loops of reduce.hpp. They are compiled once for each kind of processor. Private to
// reduce/.
//
// Everything here is in an unnamed namespace and calls nothing of the standard library. Otherwise
// the linker might keep a copy of a shared function that was compiled for a newer processor, and
// use it everywhere. Each file that includes this one defines its own `Halves`, which converts f16
// to float32 and back.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/reduce/float_formats.hpp"
#include "collectives/types.hpp"

namespace trainyard::collectives {
namespace {

using KernelReduce = void (*)(std::byte* out, const std::byte* const* operands, size_t count,
                              size_t elements, int divisor);

// Small enough that a block of float32 values stays in the first-level cache, large enough to
// amortise the loops around it.
inline constexpr size_t kBlockElements = 512;

// -- combining two values

struct Sum {
  template <class Number>
  static Number of(Number a, Number b) {
    return Number(a + b);
  }
};
struct Product {
  template <class Number>
  static Number of(Number a, Number b) {
    return Number(a * b);
  }
};
struct Minimum {
  template <class Number>
  static Number of(Number a, Number b) {
    return b < a ? b : a;
  }
};
struct Maximum {
  template <class Number>
  static Number of(Number a, Number b) {
    return a < b ? b : a;
  }
};
struct Or {
  static uint8_t of(uint8_t a, uint8_t b) { return uint8_t((a != 0) | (b != 0)); }
};
struct And {
  static uint8_t of(uint8_t a, uint8_t b) { return uint8_t((a != 0) & (b != 0)); }
};

struct Xor {
  static uint8_t of(uint8_t a, uint8_t b) { return uint8_t((a != 0) ^ (b != 0)); }
};
struct BitsAnd {
  template <class Number>
  static Number of(Number a, Number b) {
    return Number(a & b);
  }
};
struct BitsOr {
  template <class Number>
  static Number of(Number a, Number b) {
    return Number(a | b);
  }
};
struct BitsXor {
  template <class Number>
  static Number of(Number a, Number b) {
    return Number(a ^ b);
  }
};

// Signed sums and products are computed as unsigned numbers, whose overflow is defined to wrap.
template <class Signed, class Unsigned>
struct Wrapping {
  template <class Combine>
  struct By {
    static Signed of(Signed a, Signed b) { return Signed(Combine::of(Unsigned(a), Unsigned(b))); }
  };
};

// -- types that are combined in their own type

inline double divided(double value, int divisor) { return value / double(divisor); }
inline float divided(float value, int divisor) { return value / float(divisor); }
template <class Integer>
Integer divided(Integer value, int divisor) {
  return Integer(int64_t(value) / divisor);
}

template <class Number, class Combine, bool divides>
void reduce_same(std::byte* out_bytes, const std::byte* const* operands, size_t count,
                 size_t elements, int divisor) {
  auto* out = reinterpret_cast<Number*>(out_bytes);
  const auto* first = reinterpret_cast<const Number*>(operands[0]);
  if (count == 2) {
    const auto* second = reinterpret_cast<const Number*>(operands[1]);
    // Each element is read before it is written, at the same index, so `out` may be one of the
    // operands.
#pragma GCC ivdep
    for (size_t i = 0; i < elements; ++i) {
      const Number value = Combine::of(first[i], second[i]);
      out[i] = divides ? divided(value, divisor) : value;
    }
    return;
  }
  for (size_t begin = 0; begin < elements; begin += kBlockElements) {
    const size_t size = elements - begin < kBlockElements ? elements - begin : kBlockElements;
    alignas(64) Number sums[kBlockElements];
    for (size_t i = 0; i < size; ++i) sums[i] = first[begin + i];
    for (size_t k = 1; k < count; ++k) {
      const auto* other = reinterpret_cast<const Number*>(operands[k]) + begin;
      for (size_t i = 0; i < size; ++i) sums[i] = Combine::of(sums[i], other[i]);
    }
    for (size_t i = 0; i < size; ++i)
      out[begin + i] = divides ? divided(sums[i], divisor) : sums[i];
  }
}

// -- types that are combined as float32

template <class Format, class Combine, bool divides>
void reduce_wide(std::byte* out_bytes, const std::byte* const* operands, size_t count,
                 size_t elements, int divisor) {
  using Narrow = typename Format::Narrow;
  auto* out = reinterpret_cast<Narrow*>(out_bytes);
  if constexpr (Format::kOneByOne) {
    if (count == 2) {
      const auto* first = reinterpret_cast<const Narrow*>(operands[0]);
      const auto* second = reinterpret_cast<const Narrow*>(operands[1]);
#pragma GCC ivdep
      for (size_t i = 0; i < elements; ++i) {
        const float value = Combine::of(Format::wide(first[i]), Format::wide(second[i]));
        out[i] = Format::narrowed(divides ? value / float(divisor) : value);
      }
      return;
    }
  }
  for (size_t begin = 0; begin < elements; begin += kBlockElements) {
    const size_t size = elements - begin < kBlockElements ? elements - begin : kBlockElements;
    alignas(64) float sums[kBlockElements];
    alignas(64) float others[kBlockElements];
    Format::widen(reinterpret_cast<const Narrow*>(operands[0]) + begin, sums, size);
    for (size_t k = 1; k < count; ++k) {
      Format::widen(reinterpret_cast<const Narrow*>(operands[k]) + begin, others, size);
      for (size_t i = 0; i < size; ++i) sums[i] = Combine::of(sums[i], others[i]);
    }
    if (divides) {
      for (size_t i = 0; i < size; ++i) sums[i] /= float(divisor);
    }
    Format::narrow(sums, out + begin, size);
  }
}

struct Bfloats {
  using Narrow = uint16_t;
  static constexpr bool kOneByOne = true;  // plain arithmetic, which the compiler vectorises
  static float wide(uint16_t bits) { return formats::from_bf16(bits); }
  static uint16_t narrowed(float value) { return formats::to_bf16(value); }
  static void widen(const uint16_t* from, float* to, size_t size) {
    for (size_t i = 0; i < size; ++i) to[i] = formats::float_of(uint32_t(from[i]) << 16);
  }
  static void narrow(const float* from, uint16_t* to, size_t size) {
    for (size_t i = 0; i < size; ++i) to[i] = formats::to_bf16(from[i]);
  }
};

// A table of all 256 values of an 8-bit format as float32.
template <float (*from)(uint8_t)>
struct EightBits {
  float values[256];
  EightBits() {
    for (int i = 0; i < 256; ++i) values[i] = from(uint8_t(i));
  }
};

template <float (*from)(uint8_t), uint8_t (*to)(float)>
struct Eights {
  using Narrow = uint8_t;
  static constexpr bool kOneByOne = false;
  static void widen(const uint8_t* source, float* wide, size_t size) {
    static const EightBits<from> table;
    for (size_t i = 0; i < size; ++i) wide[i] = table.values[source[i]];
  }
  static void narrow(const float* wide, uint8_t* target, size_t size) {
    for (size_t i = 0; i < size; ++i) target[i] = to(wide[i]);
  }
};

// -- the choice of a loop

template <class Number, class Unsigned>
KernelReduce integers_by(Reduction reduction) {
  using Wrap = Wrapping<Number, Unsigned>;
  switch (reduction) {
    case Reduction::sum:
      return reduce_same<Number, typename Wrap::template By<Sum>, false>;
    case Reduction::average:
      return reduce_same<Number, typename Wrap::template By<Sum>, true>;
    case Reduction::minimum:
      return reduce_same<Number, Minimum, false>;
    case Reduction::maximum:
      return reduce_same<Number, Maximum, false>;
    case Reduction::bits_and:
      return reduce_same<Number, BitsAnd, false>;
    case Reduction::bits_or:
      return reduce_same<Number, BitsOr, false>;
    case Reduction::bits_xor:
      return reduce_same<Number, BitsXor, false>;
    default:
      return reduce_same<Number, typename Wrap::template By<Product>, false>;
  }
}

template <class Number>
KernelReduce floats_by(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return reduce_same<Number, Sum, false>;
    case Reduction::average:
      return reduce_same<Number, Sum, true>;
    case Reduction::minimum:
      return reduce_same<Number, Minimum, false>;
    case Reduction::maximum:
      return reduce_same<Number, Maximum, false>;
    default:
      return reduce_same<Number, Product, false>;
  }
}

template <class Format>
KernelReduce wide_by(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return reduce_wide<Format, Sum, false>;
    case Reduction::average:
      return reduce_wide<Format, Sum, true>;
    case Reduction::minimum:
      return reduce_wide<Format, Minimum, false>;
    case Reduction::maximum:
      return reduce_wide<Format, Maximum, false>;
    default:
      return reduce_wide<Format, Product, false>;
  }
}

template <class Halves>
KernelReduce kernel_for(Type type, Reduction reduction) {
  switch (type) {
    case Type::f64:
      return floats_by<double>(reduction);
    case Type::f32:
      return floats_by<float>(reduction);
    case Type::f16:
      return wide_by<Halves>(reduction);
    case Type::bf16:
      return wide_by<Bfloats>(reduction);
    case Type::f8e4m3:
      return wide_by<Eights<formats::from_f8e4m3, formats::to_f8e4m3>>(reduction);
    case Type::f8e5m2:
      return wide_by<Eights<formats::from_f8e5m2, formats::to_f8e5m2>>(reduction);
    case Type::i64:
      return integers_by<int64_t, uint64_t>(reduction);
    case Type::i32:
      return integers_by<int32_t, uint32_t>(reduction);
    case Type::i16:
      return integers_by<int16_t, uint32_t>(reduction);
    case Type::i8:
      return integers_by<int8_t, uint32_t>(reduction);
    case Type::u8:
      return integers_by<uint8_t, uint32_t>(reduction);
    default:
      if (reduction == Reduction::bits_xor) return reduce_same<uint8_t, Xor, false>;
      return reduction == Reduction::sum || reduction == Reduction::maximum ||
                     reduction == Reduction::bits_or
                 ? reduce_same<uint8_t, Or, false>
                 : reduce_same<uint8_t, And, false>;
  }
}

// -- conversions between 16 bits and float32

template <class Halves>
void widen_with(Type type, const std::byte* narrow, float* wide, size_t elements) {
  const auto* from = reinterpret_cast<const uint16_t*>(narrow);
  if (type == Type::f16) return Halves::widen(from, wide, elements);
  Bfloats::widen(from, wide, elements);
}

template <class Halves>
void narrow_with(Type type, const float* wide, std::byte* narrow, size_t elements) {
  auto* to = reinterpret_cast<uint16_t*>(narrow);
  if (type == Type::f16) return Halves::narrow(wide, to, elements);
  Bfloats::narrow(wide, to, elements);
}

}  // namespace
}  // namespace trainyard::collectives
