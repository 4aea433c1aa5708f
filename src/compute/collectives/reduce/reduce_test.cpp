// Compares every kernel that this machine can run with the reference, and the float formats with
// plain arithmetic.
#include "collectives/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "collectives/testing/circle.hpp"

namespace trainyard::collectives {
namespace {

using testing::awkward_inputs;
using testing::Bytes;

std::vector<const std::byte*> pointers(const std::vector<Bytes>& all) {
  std::vector<const std::byte*> addresses;
  for (const Bytes& bytes : all) addresses.push_back(bytes.data());
  return addresses;
}

TEST(Kernels, AllConvertToTheSameBits) {
  std::vector<float> floats;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 65'521 * 3)
    floats.push_back(formats::float_of(uint32_t(bits)));
  for (const Kernels& kernels : runnable_kernels()) {
    for (const Type type : {Type::f16, Type::bf16}) {
      std::vector<uint16_t> narrow(floats.size());
      kernels.narrow(type, floats.data(), reinterpret_cast<std::byte*>(narrow.data()),
                     floats.size());
      for (size_t i = 0; i < floats.size(); ++i)
        ASSERT_EQ(narrow[i],
                  type == Type::f16 ? formats::to_f16(floats[i]) : formats::to_bf16(floats[i]))
            << floats[i];
      std::vector<uint16_t> all(65536);
      std::vector<float> wide(all.size());
      for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
      kernels.widen(type, reinterpret_cast<const std::byte*>(all.data()), wide.data(), all.size());
      for (size_t i = 0; i < all.size(); ++i) {
        const float expected =
            type == Type::f16 ? formats::from_f16(all[i]) : formats::from_bf16(all[i]);
        ASSERT_EQ(formats::bits_of(wide[i]), formats::bits_of(expected))
            << kernels.name << " " << i;
      }
    }
  }
}

TEST(Kernels, AllGiveTheBitsOfTheReference) {
  for (const Kernels& kernels : runnable_kernels()) {
    for (int type = 0; type < kTypesCount; ++type) {
      for (int reduction = 0; reduction < kReductionsCount; ++reduction) {
        if (!exists(Type(type), Reduction(reduction))) continue;
        for (const int operands : {2, 3, 7}) {
          for (const size_t elements : {1, 15, 16, 33, 1000}) {
            auto inputs = awkward_inputs(Type(type), operands, elements);
            plan::Expression expression;
            for (int rank = 0; rank < operands; ++rank) expression.parts.push_back({rank, {}});
            const auto expected = reference::reduced(Type(type), Reduction(reduction), inputs,
                                                     [&](size_t) { return expression; });
            const int divisor = Reduction(reduction) == Reduction::average ? operands : 0;
            Bytes out(expected.size());
            kernels.reduce_values(Type(type), Reduction(reduction), out.data(),
                                  pointers(inputs).data(), size_t(operands), elements, divisor);
            ASSERT_EQ(out, expected)
                << kernels.name << " " << to_string(Type(type)) << " "
                << to_string(Reduction(reduction)) << " of " << operands << " x " << elements;
            // In place: out is the second operand.
            kernels.reduce_values(Type(type), Reduction(reduction), inputs[1].data(),
                                  pointers(inputs).data(), size_t(operands), elements, divisor);
            ASSERT_EQ(inputs[1], expected) << kernels.name << " in place";
          }
        }
      }
    }
  }
}

void put_float(Type type, Bytes& bytes, size_t i, float value) {
  if (type == Type::f64) return testing::put_number(bytes, i, double(value));
  if (type == Type::f32) return testing::put_number(bytes, i, value);
  if (type == Type::f16) return testing::put_number(bytes, i, formats::to_f16(value));
  if (type == Type::bf16) return testing::put_number(bytes, i, formats::to_bf16(value));
  testing::put_number(bytes, i,
                      type == Type::f8e4m3 ? formats::to_f8e4m3(value) : formats::to_f8e5m2(value));
}

TEST(Kernels, MinimumAndMaximumKeepTheFirstOfEqualsAndOfNan) {
  const float values[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f, -1.0f};
  constexpr size_t kinds = std::size(values);
  constexpr size_t operands = 3;
  constexpr size_t elements =
      // all combinations of three values, at every position in a vector register
      kinds * kinds * kinds;
  for (const Type type :
       {Type::f64, Type::f32, Type::f16, Type::bf16, Type::f8e4m3, Type::f8e5m2}) {
    std::vector<Bytes> inputs(operands, Bytes(elements * bytes_of(type)));
    for (size_t i = 0; i < elements; ++i) {
      size_t rest = i;
      for (Bytes& input : inputs) {
        put_float(type, input, i, values[(rest + i / 7) % kinds]);
        rest /= kinds;
      }
    }
    for (const Kernels& kernels : runnable_kernels()) {
      for (const Reduction reduction : {Reduction::minimum, Reduction::maximum}) {
        for (const size_t count : {size_t{2}, operands}) {
          const std::vector<Bytes> given(inputs.begin(), inputs.begin() + ptrdiff_t(count));
          plan::Expression expression;
          for (size_t rank = 0; rank < count; ++rank) expression.parts.push_back({int(rank), {}});
          const auto expected =
              reference::reduced(type, reduction, given, [&](size_t) { return expression; });
          Bytes out(expected.size());
          kernels.reduce_values(type, reduction, out.data(), pointers(given).data(), count,
                                elements, 0);
          ASSERT_EQ(out, expected) << kernels.name << " " << to_string(type) << " "
                                   << to_string(reduction) << " of " << count;
          if (count > 2) continue;
          // The guarantee of types.hpp.
          const auto is_any = [&](const Bytes& value, float a, float b) {
            Bytes both(2 * bytes_of(type));
            put_float(type, both, 0, a);
            put_float(type, both, 1, b);
            const auto middle = both.begin() + ptrdiff_t(bytes_of(type));
            return value == Bytes(both.begin(), middle) || value == Bytes(middle, both.end());
          };
          for (size_t i = 0; i < elements; ++i) {
            const auto at = [&](const Bytes& bytes) {
              const auto begin = bytes.begin() + ptrdiff_t(i * bytes_of(type));
              return Bytes(begin, begin + ptrdiff_t(bytes_of(type)));
            };
            const Bytes first = at(given[0]), second = at(given[1]);
            const bool first_is_kept = is_any(first, NAN, -NAN) || is_any(second, NAN, -NAN) ||
                                       (is_any(first, 0.0f, -0.0f) && is_any(second, 0.0f, -0.0f));
            ASSERT_TRUE(!first_is_kept || at(out) == first)
                << kernels.name << " " << to_string(type) << " " << i;
          }
        }
      }
    }
  }
}

TEST(Kernels, EveryF16AndBf16SurvivesNextToZero) {
  // A reduction with -0 keeps every value but quiets a signalling NaN, as the conversions of the
  // processors do.
  for (const Kernels& kernels : runnable_kernels()) {
    for (const Type type : {Type::f16, Type::bf16}) {
      std::vector<uint16_t> all(65536), zeros(65536, 0x8000), out(65536);
      for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
      const std::byte* operands[] = {reinterpret_cast<const std::byte*>(all.data()),
                                     reinterpret_cast<const std::byte*>(zeros.data())};
      kernels.reduce_values(type, Reduction::sum, reinterpret_cast<std::byte*>(out.data()),
                            operands, 2, all.size(), 0);
      const uint16_t infinity = type == Type::f16 ? 0x7c00 : 0x7f80;
      const uint16_t quiet = type == Type::f16 ? 0x200 : 0x40;
      for (size_t i = 0; i < all.size(); ++i) {
        const bool is_nan = (i & 0x7fff) > infinity;
        ASSERT_EQ(out[i], is_nan ? uint16_t(i) | quiet : uint16_t(i)) << kernels.name << " " << i;
      }
    }
  }
}

TEST(Kernels, RoundingToF16IsTheSameEverywhere) {
  SeededRandom random(5);
  std::vector<uint16_t> a(100000), b(100000);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = uint16_t(random.below(65536));
    b[i] = uint16_t(random.below(65536));
  }
  const auto is_nan = [](uint16_t bits) { return (bits & 0x7fff) > 0x7c00; };
  std::vector<uint16_t> expected;
  for (const Kernels& kernels : runnable_kernels()) {
    std::vector<uint16_t> out(a.size());
    const std::byte* operands[] = {reinterpret_cast<const std::byte*>(a.data()),
                                   reinterpret_cast<const std::byte*>(b.data())};
    kernels.reduce_values(Type::f16, Reduction::product, reinterpret_cast<std::byte*>(out.data()),
                          operands, 2, a.size(), 0);
    for (uint16_t& bits : out) bits = is_nan(bits) ? 0x7e00 : bits;  // all NaN count as equal
    if (expected.empty()) expected = out;
    ASSERT_EQ(out, expected) << kernels.name;
  }
}

// Checks numbers around every number of a format: each is rounded to the nearest, and to the even
// one on a tie.
template <class Narrow>
void expect_nearest(float (*widen)(Narrow), Narrow (*narrow)(float), unsigned finite) {
  for (unsigned bits = 0; bits < finite; ++bits) {
    const float low = widen(Narrow(bits));
    const float high = widen(Narrow(bits + 1));
    const float middle = float((double(low) + double(high)) / 2);
    ASSERT_EQ(narrow(low), bits);
    ASSERT_EQ(narrow(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, low)), bits) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, high)), bits + 1) << bits;
  }
}

TEST(Formats, RoundToTheNearestAndToEven) {
  expect_nearest(formats::from_f16, formats::to_f16, 0x7bff);
  expect_nearest(formats::from_f8e4m3, formats::to_f8e4m3, 0x7e);
  expect_nearest(formats::from_f8e5m2, formats::to_f8e5m2, 0x7b);
  expect_nearest(formats::from_bf16, formats::to_bf16, 0x7f7f);
}

TEST(Formats, ConvertTheEndsOfTheirRanges) {
  EXPECT_EQ(formats::from_f16(0x7bff), 65504.0f);
  EXPECT_EQ(formats::from_f16(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(formats::to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(formats::to_f16(65519.0f), 0x7bff);
  EXPECT_EQ(formats::from_f8e4m3(0x7e), 448.0f);
  EXPECT_EQ(formats::to_f8e4m3(464.0f), 0x7e);  // the tie goes to the even number
  EXPECT_EQ(formats::to_f8e4m3(480.0f), 0x7f);  // too large: NaN
  EXPECT_EQ(formats::from_f8e4m3(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(formats::from_f8e5m2(0x7b), 57344.0f);
  EXPECT_EQ(formats::to_f8e5m2(65536.0f), 0x7c);
  EXPECT_EQ(formats::to_f8e5m2(-1e30f), 0xfc);
  EXPECT_TRUE(std::isnan(formats::from_f8e5m2(formats::to_f8e5m2(NAN))));
  EXPECT_TRUE(std::isnan(formats::from_bf16(formats::to_bf16(NAN))));
}

template <class Number>
std::vector<Number> scaled(Type type, std::vector<Number> values, double factor) {
  scale(type, reinterpret_cast<std::byte*>(values.data()), values.size(), factor);
  return values;
}

TEST(Scale, MultipliesIntegersAsDoublesAndTruncates) {
  EXPECT_EQ(scaled<int32_t>(Type::i32, {7, -7}, 0.5), (std::vector<int32_t>{3, -3}));
  EXPECT_EQ(scaled<int64_t>(Type::i64, {(1LL << 53) - 1, -100}, 0.19),
            (std::vector<int64_t>{1711367858400788, -19}));
  EXPECT_EQ(scaled<int64_t>(Type::i64, {INT64_MAX, INT64_MIN, 0}, 2.0),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0}));
  EXPECT_EQ(scaled<int64_t>(Type::i64, {1}, NAN), std::vector<int64_t>{0});
  EXPECT_EQ(scaled<int8_t>(Type::i8, {100, -3}, 2.5), (std::vector<int8_t>{-6, -7}));
  EXPECT_EQ(scaled<uint8_t>(Type::u8, {3, 200}, -1.0), (std::vector<uint8_t>{253, 56}));
}

// Frameworks do the same: the factor has the type in which they compute.
TEST(Scale, MultipliesFloatsInFloat32) {
  constexpr double factor = 0.1915194503788923;
  for (int number = -2048; number <= 2048; ++number) {
    const auto value = float(number);
    const float product = value * float(factor);
    ASSERT_EQ(scaled<float>(Type::f32, {value}, factor)[0], product) << number;
    ASSERT_EQ(scaled<uint16_t>(Type::f16, {formats::to_f16(value)}, factor)[0],
              formats::to_f16(product))
        << number;
    const float brain = formats::from_bf16(formats::to_bf16(value));
    ASSERT_EQ(scaled<uint16_t>(Type::bf16, {formats::to_bf16(value)}, factor)[0],
              formats::to_bf16(brain * float(factor)))
        << number;
    ASSERT_EQ(scaled<double>(Type::f64, {value}, factor)[0], double(value) * factor) << number;
  }
}

}  // namespace
}  // namespace trainyard::collectives
