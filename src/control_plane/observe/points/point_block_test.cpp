#include "observe/points/point_block.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/bytes/crc.hpp"
#include "base/random.hpp"
#include "observe/bytes.hpp"
#include "observe/points/point_batch.hpp"
#include "observe/testing/samples.hpp"

namespace trainyard::observe {
namespace {

const double kSpecialValues[] = {
    0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1.5e308, -1.5e308, 2.2250738585072014e-308, 0.1};

double any_value(SeededRandom& random, double former) {
  switch (random.below(5)) {
    case 0:
      return kSpecialValues[random.below(std::size(kSpecialValues))];
    case 1:
      return former;
    case 2:
      return former + 1;
    case 3:
      return double(random.below(1000)) / 100;
    default:
      return std::bit_cast<double>(random.next());
  }
}

int64_t any_step(SeededRandom& random) {
  switch (random.below(6)) {
    case 0:
      return 0;
    case 1:
      return 60'000;
    case 2:
      return int64_t(random.below(1000));
    case 3:
      return int64_t(random.below(10'000'000'000));
    case 4:
      return int64_t(random.next() >> 2);
    default:
      return 60'000 + int64_t(random.below(5));
  }
}

std::vector<Sample> any_samples(SeededRandom& random, size_t count) {
  std::vector<Sample> samples;
  int64_t at = random.chance(4) ? INT64_MIN : int64_t(random.below(1'800'000'000'000));
  double value = 0;
  const bool aggregated = random.chance(3), units = random.chance(3);
  for (size_t i = 0; i < count; ++i) {
    const int64_t step = any_step(random);
    at = at > INT64_MAX - step ? INT64_MAX : at + step;
    value = any_value(random, value);
    samples.push_back(sample_of(from_milliseconds(at), value));
    if (aggregated && random.chance(2)) {
      samples.back().count = any_value(random, 3);
      samples.back().minimum = any_value(random, value);
      samples.back().maximum = any_value(random, value);
    }
    if (units && random.chance(3)) samples.back().unit = std::to_string(random.below(400));
  }
  return samples;
}

TEST(PointBlock, RoundTripsAnySamplesBitForBit) {
  SeededRandom random(11);
  for (int round = 0; round < 2000; ++round) {
    const auto samples = any_samples(random, 1 + random.below(700));
    for (std::span<const Sample> left = samples; !left.empty();) {
      const EncodedPoints block = encode_point_block(left);
      ASSERT_GE(block.count, 1U);
      ASSERT_TRUE(block.count == 1 || block.bytes.size() <= kPointBlockBytesMax);
      const auto decoded = decode_point_block(block.bytes);
      ASSERT_TRUE(decoded) << decoded.error().message;
      ASSERT_TRUE(same_samples(*decoded, left.first(block.count))) << round;
      left = left.subspan(block.count);
    }
  }
}

TEST(PointBlock, EncodesSteadySeriesInFewBits) {
  std::vector<Sample> constant, counter, smooth;
  for (int i = 0; i < 512; ++i) {
    const Instant at = from_milliseconds(1'800'000'000'000 + i * 60'000);
    constant.push_back(sample_of(at, 0.1));
    counter.push_back(sample_of(at, 1000 + i * 3));
    smooth.push_back(sample_of(at, 500 + 1.0 / (i + 501)));
  }
  EXPECT_LT(encode_point_block(constant).bytes.size(), 180U);
  EXPECT_EQ(encode_point_block(constant).count, 512U);
  EXPECT_LT(encode_point_block(counter).bytes.size(), 230U);
  EXPECT_GT(encode_point_block(smooth).count, 280U);
}

TEST(PointBlock, EncodesLongUnits) {
  std::vector<Sample> samples;
  for (int i = 0; i < 3; ++i)
    samples.push_back(
        sample_of(from_milliseconds(i), 1, std::string(kUnitBytesMax, char('a' + i))));
  const EncodedPoints block = encode_point_block(samples);
  EXPECT_EQ(block.count, 1U);
  EXPECT_TRUE(same_samples(*decode_point_block(block.bytes), {samples.data(), 1}));
}

// Replaces the checksum by the correct one, so that a decoder reads the other bytes.
std::string with_checksum(std::string bytes) {
  const uint32_t sum = Crc32::of(std::string_view(bytes).substr(0, bytes.size() - 4));
  std::memcpy(bytes.data() + bytes.size() - 4, &sum, 4);
  return bytes;
}

TEST(PointBlock, RejectsDamagedBytes) {
  SeededRandom random(12);
  for (int round = 0; round < 300; ++round) {
    const auto samples = any_samples(random, 1 + random.below(50));
    const std::string bytes = encode_point_block(samples).bytes;
    for (size_t length = 0; length < bytes.size(); ++length) {
      const auto decoded = decode_point_block(std::string_view(bytes).substr(0, length));
      ASSERT_FALSE(decoded);
      ASSERT_EQ(decoded.error().kind, Kind::corrupt);
    }
    std::string damaged = bytes;
    damaged[random.below(damaged.size())] ^= char(1 << random.below(8));
    ASSERT_FALSE(decode_point_block(damaged));
    const auto checked = decode_point_block(with_checksum(damaged));
    if (checked) {
      ASSERT_LE(checked->size(), kPointBlockPointsMax);
    }
  }
}

TEST(PointBatch, RoundTripsAnySamplesInTheirOrder) {
  SeededRandom random(13);
  for (int round = 0; round < 200; ++round) {
    PointBatch batch;
    std::vector<int64_t> series;
    std::vector<Sample> samples;
    for (uint64_t runs = random.below(20); runs > 0; --runs) {
      const auto id = int64_t(random.below(5) == 0 ? INT64_MAX : random.below(4));
      for (const Sample& sample : any_samples(random, random.below(30))) {
        batch.add(id, sample);
        series.push_back(id);
        samples.push_back(sample);
      }
    }
    const std::string bytes = batch.finish();
    std::vector<int64_t> found_series;
    std::vector<Sample> found;
    const auto take = [&](int64_t id, const Sample& sample) {
      found_series.push_back(id);
      found.push_back(sample);
    };
    const auto decoded = decode_point_batch(bytes, take);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(found_series, series);
    EXPECT_TRUE(same_samples(found, samples));
    std::string damaged = bytes;
    damaged[random.below(damaged.size())] ^= char(1 << random.below(8));
    ASSERT_EQ(decode_point_batch(damaged, take).error().kind, Kind::corrupt);
    (void)decode_point_batch(with_checksum(damaged), take);
    for (size_t length = 0; length < bytes.size(); length += 1 + length / 16)
      ASSERT_FALSE(decode_point_batch(std::string_view(bytes).substr(0, length), take));
  }
}

}  // namespace
}  // namespace trainyard::observe
