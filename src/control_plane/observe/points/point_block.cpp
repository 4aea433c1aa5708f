#include "observe/points/point_block.hpp"

#include <algorithm>
#include <bit>

#include "base/bytes/crc.hpp"
#include "base/check.hpp"
#include "observe/bytes.hpp"
#include "observe/points/bits.hpp"

namespace trainyard::observe {
namespace {

constexpr uint8_t kPointBlockVersion = 1;
constexpr size_t kPointBlockFixedBytes = 1 + 1 + 2 + 8 + 1;
constexpr size_t kPointBlockChecksumBytes = 4;

// Flags of a block.
constexpr uint8_t kLinear = 1;        // values are predicted by a line
constexpr uint8_t kAggregated = 2;    // some samples have several values
constexpr uint8_t kSeveralUnits = 4;  // each sample names its unit
constexpr uint8_t kFlags = kLinear | kAggregated | kSeveralUnits;

// The lengths of differences of time differences, each after a prefix of ones that says which.
constexpr unsigned kTimeBits[] = {0, 8, 14, 20, 32, 64};
constexpr unsigned kTimeLengths = std::size(kTimeBits);

bool fits(int64_t number, unsigned bits) {
  if (bits == 0) return number == 0;
  return bits == 64 || (number >= -(int64_t{1} << (bits - 1)) && number < int64_t{1} << (bits - 1));
}

// Differences wrap around, so that all times round-trip.
struct TimeState {
  uint64_t at;
  uint64_t step = 0;

  void write(BitWriter& bits, int64_t time) {
    const uint64_t new_step = uint64_t(time) - at;
    const auto change = int64_t(new_step - step);
    unsigned length = 0;
    while (!fits(change, kTimeBits[length])) ++length;
    if (length + 1 == kTimeLengths)
      bits.write(~uint64_t{0}, length);
    else
      bits.write(~uint64_t{1}, length + 1);
    bits.write(uint64_t(change), kTimeBits[length]);
    at = uint64_t(time);
    step = new_step;
  }
  int64_t read(BitReader& bits) {
    unsigned length = 0;
    while (length + 1 < kTimeLengths && bits.read(1) == 1) ++length;
    const unsigned count = kTimeBits[length];
    uint64_t change = bits.read(count);
    if (count > 0 && count < 64 && change >> (count - 1) != 0) change |= ~uint64_t{0} << count;
    step += change;
    at += step;
    return int64_t(at);
  }
};

// The bits of a value, taken as an integer, differ from their prediction by 0, or by a number whose
// ones are within the former window (leading and trailing zeros), or within a new one. A difference
// has fewer ones than the XOR of Gorilla where a carry passes through many bits.
constexpr unsigned kLeadingBits = 6;  // Gorilla has 5, which wastes bits of smooth series
constexpr unsigned kWidthBits = 6;

uint64_t magnitude(uint64_t difference) {
  return difference >> 63 != 0 ? ~difference + 1 : difference;
}
unsigned ones_width(uint64_t number) {
  if (number == 0) return 0;
  return 64 - unsigned(std::countl_zero(number)) - unsigned(std::countr_zero(number));
}

struct ValueState {
  bool linear;
  uint64_t value = 0;
  uint64_t former = 0;
  bool first = true;
  unsigned leading = 0;
  unsigned width = 0;  // 0: there is no window yet

  uint64_t prediction() const { return linear ? 2 * value - former : value; }
  void advance(uint64_t next) {
    former = first ? next : value;
    value = next;
    first = false;
  }
  void write(BitWriter& bits, double number) {
    const auto next = std::bit_cast<uint64_t>(number);
    const uint64_t difference = next - prediction();
    advance(next);
    if (difference == 0) return bits.write(0, 1);
    const uint64_t negative = difference >> 63;
    const uint64_t rest = magnitude(difference);
    const auto zeros = unsigned(std::countl_zero(rest));
    const auto trailing = unsigned(std::countr_zero(rest));
    const unsigned own_width = 64 - zeros - trailing;
    const bool in_window = width > 0 && zeros >= leading && trailing >= 64 - leading - width;
    if (in_window && width <= own_width + kLeadingBits + kWidthBits) {
      bits.write(0b100 | negative, 3);
    } else {
      leading = zeros;
      width = own_width;
      bits.write(((0b110 | negative) << kLeadingBits | leading) << kWidthBits | (width - 1),
                 3 + kLeadingBits + kWidthBits);
    }
    bits.write(rest >> (64 - leading - width), width);
  }
  // False: the window exceeds 64 bits, or is missing.
  bool read(BitReader& bits, double& number) {
    uint64_t difference = 0;
    if (bits.read(1) == 1) {
      const uint64_t new_window = bits.read(1);
      const uint64_t negative = bits.read(1);
      if (new_window == 1) {
        leading = unsigned(bits.read(kLeadingBits));
        width = unsigned(bits.read(kWidthBits)) + 1;
      }
      if (width == 0 || leading + width > 64) return false;
      difference = bits.read(width) << (64 - leading - width);
      if (negative) difference = ~difference + 1;
    }
    const uint64_t next = difference + prediction();
    advance(next);
    number = std::bit_cast<double>(next);
    return true;
  }
};

// True if the line through the two former values predicts the sums better than the former value.
bool is_linear(std::span<const Sample> samples) {
  uint64_t with_former = 0, with_line = 0;
  for (size_t i = 2; i < samples.size(); ++i) {
    const auto value = std::bit_cast<uint64_t>(samples[i].sum);
    const auto former = std::bit_cast<uint64_t>(samples[i - 1].sum);
    const auto second = std::bit_cast<uint64_t>(samples[i - 2].sum);
    with_former += ones_width(magnitude(value - former));
    with_line += ones_width(magnitude(value - (2 * former - second)));
  }
  return with_line < with_former;
}

struct PointState {
  uint8_t flags;
  TimeState time;
  ValueState sum, count, minimum, maximum;
  uint64_t unit = 0;

  PointState(uint8_t block_flags, int64_t first)
      : flags(block_flags),
        time{uint64_t(first)},
        sum{(flags & kLinear) != 0},
        count{false},
        minimum{(flags & kLinear) != 0},
        maximum{(flags & kLinear) != 0} {}

  void write(BitWriter& bits, const Sample& sample, uint64_t unit_index) {
    time.write(bits, to_milliseconds(sample.at));
    if (flags & kSeveralUnits) {
      bits.write(unit_index != unit, 1);
      if (unit_index != unit) bits.write(unit_index, 8);
      unit = unit_index;
    }
    sum.write(bits, sample.sum);
    if (!(flags & kAggregated)) return;
    const bool plain = is_plain(sample);
    bits.write(plain, 1);
    if (plain) return;
    count.write(bits, sample.count);
    minimum.write(bits, sample.minimum);
    maximum.write(bits, sample.maximum);
  }
  // False: the bits are invalid.
  bool read(BitReader& bits, Sample& sample) {
    sample.at = from_milliseconds(time.read(bits));
    if ((flags & kSeveralUnits) && bits.read(1) == 1) unit = bits.read(8);
    if (!sum.read(bits, sample.sum)) return false;
    if (!(flags & kAggregated) || bits.read(1) == 1) {
      sample.count = 1;
      sample.minimum = sample.maximum = sample.sum;
      return true;
    }
    return count.read(bits, sample.count) && minimum.read(bits, sample.minimum) &&
           maximum.read(bits, sample.maximum);
  }
};

using UnitTable = std::vector<std::string_view>;

// Returns the index of the unit, which is added if it is new. `likely`: an index.
size_t index_of_unit(UnitTable& units, std::string_view unit, size_t likely) {
  if (likely < units.size() && units[likely] == unit) return likely;
  const auto index = size_t(std::ranges::find(units, unit) - units.begin());
  if (index == units.size()) units.push_back(unit);
  return index;
}

EncodedPoints encode_with(std::span<const Sample> samples, uint8_t flags, size_t bytes_max) {
  std::string body;
  BitWriter bits(body);
  UnitTable units;
  size_t unit_bytes = 0;
  size_t unit = 0;
  size_t count = 0;
  PointState state(flags, to_milliseconds(samples[0].at));
  for (const Sample& sample : samples) {
    const BitWriter::Mark mark = bits.mark();
    const size_t units_before = units.size();
    unit = index_of_unit(units, sample.unit, unit);
    const size_t added = units.size() > units_before ? 2 + sample.unit.size() : 0;
    state.write(bits, sample, unit);
    const size_t bytes = kPointBlockFixedBytes + unit_bytes + added + bits.size();
    if (count > 0 &&
        (units.size() > kPointBlockUnitsMax || bytes + kPointBlockChecksumBytes > bytes_max)) {
      bits.return_to(mark);
      units.resize(units_before);
      break;
    }
    unit_bytes += added;
    ++count;
  }
  bits.finish();

  EncodedPoints encoded{.bytes = "", .count = count};
  std::string& bytes = encoded.bytes;
  bytes.reserve(kPointBlockFixedBytes + unit_bytes + body.size() + kPointBlockChecksumBytes);
  put(bytes, kPointBlockVersion);
  put(bytes, flags);
  put(bytes, uint16_t(count));
  put(bytes, to_milliseconds(samples[0].at));
  put(bytes, uint8_t(units.size()));
  for (const std::string_view unit : units) {
    put(bytes, uint16_t(unit.size()));
    bytes += unit;
  }
  bytes += body;
  put(bytes, Crc32::of(bytes));
  return encoded;
}

// Reads the units at `at`, and moves it behind them.
Result<UnitTable> units_of_block(std::string_view bytes, size_t& at) {
  UnitTable units(get<uint8_t>(bytes, at - 1));
  for (std::string_view& unit : units) {
    if (at + 2 > bytes.size()) return corrupt("block of points: a unit is cut off");
    const size_t length = get<uint16_t>(bytes, at);
    at += 2;
    if (length > kUnitBytesMax || at + length > bytes.size())
      return corrupt("block of points: a unit of " + std::to_string(length) + " bytes");
    unit = bytes.substr(at, length);
    at += length;
  }
  if (units.empty()) return corrupt("block of points: it has no unit");
  return units;
}

}  // namespace

bool is_plain(const Sample& sample) {
  const auto sum = std::bit_cast<uint64_t>(sample.sum);
  return sample.count == 1 && std::bit_cast<uint64_t>(sample.minimum) == sum &&
         std::bit_cast<uint64_t>(sample.maximum) == sum;
}

EncodedPoints encode_point_block(std::span<const Sample> samples, size_t bytes_max) {
  CHECK(!samples.empty(), "a block has a sample");
  samples = samples.first(std::min(samples.size(), kPointBlockPointsMax));
  uint8_t flags = 0;
  for (const Sample& sample : samples) {
    CHECK(sample.unit.size() <= kUnitBytesMax, "units are limited when they are received");
    if (!is_plain(sample)) flags |= kAggregated;
    if (sample.unit != samples[0].unit) flags |= kSeveralUnits;
  }
  if (is_linear(samples)) flags |= kLinear;
  return encode_with(samples, flags, bytes_max);
}

Result<std::vector<Sample>> decode_point_block(std::string_view bytes) {
  if (bytes.size() < kPointBlockFixedBytes + kPointBlockChecksumBytes)
    return corrupt("block of points: it ends after " + std::to_string(bytes.size()) + " bytes");
  const std::string_view body = bytes.substr(0, bytes.size() - kPointBlockChecksumBytes);
  if (get<uint32_t>(bytes, body.size()) != Crc32::of(body))
    return corrupt("block of points: it does not match its checksum");
  const auto flags = get<uint8_t>(body, 1);
  if (const auto version = get<uint8_t>(body, 0); version != kPointBlockVersion || flags > kFlags)
    return corrupt("block of points: version " + std::to_string(version) + " with flags " +
                   std::to_string(flags));
  const size_t count = get<uint16_t>(body, 2);
  if (count == 0 || count > kPointBlockPointsMax)
    return corrupt("block of points: it has " + std::to_string(count) + " points");
  size_t at = kPointBlockFixedBytes;
  const UnitTable units = TRY(units_of_block(body, at));

  std::vector<Sample> samples(count);
  BitReader bits(body.substr(at));
  PointState state(flags, get<int64_t>(body, 4));
  for (size_t i = 0; i < count; ++i) {
    Sample& sample = samples[i];
    if (!state.read(bits, sample) || bits.failed() || state.unit >= units.size() ||
        (i > 0 && sample.at < samples[i - 1].at))
      return corrupt("block of points: point " + std::to_string(i + 1) + " of " +
                     std::to_string(count) + " is invalid");
    sample.unit = units[state.unit];
  }
  if (!bits.at_end()) return corrupt("block of points: bytes after its last point");
  return samples;
}

}  // namespace trainyard::observe
