#include "observe/points/point_batch.hpp"

#include "base/bytes/crc.hpp"
#include "base/bytes/varint.hpp"
#include "base/check.hpp"
#include "observe/bytes.hpp"
#include "observe/points/point_block.hpp"

namespace trainyard::observe {
namespace {

constexpr uint8_t kPointBatchVersion = 1;
constexpr size_t kPointBatchChecksumBytes = 4;

// Small differences of either sign have short varints.
uint64_t to_zigzag(int64_t number) { return uint64_t(number) << 1 ^ uint64_t(number >> 63); }
int64_t from_zigzag(uint64_t number) { return int64_t(number >> 1 ^ (~(number & 1) + 1)); }

// Reads from bytes; after an end that comes too early, failed() is true and all numbers are 0.
class BatchReader {
 public:
  explicit BatchReader(std::string_view bytes) : left_(bytes) {}

  uint64_t varint() {
    const auto number = take_varint(left_);
    return number ? *number : fail();
  }
  double real() {
    if (left_.size() < sizeof(double)) return double(fail());
    const auto number = get<double>(left_, 0);
    left_.remove_prefix(sizeof number);
    return number;
  }
  std::string text(size_t bytes_max) {
    const uint64_t length = varint();
    if (length > bytes_max || length > left_.size()) return fail(), "";
    std::string text(left_.substr(0, length));
    left_.remove_prefix(length);
    return text;
  }
  bool failed() const { return failed_; }
  size_t left() const { return left_.size(); }

 private:
  uint64_t fail() {
    failed_ = true;
    left_ = {};
    return 0;
  }
  std::string_view left_;
  bool failed_ = false;
};

Result<void> decode_runs(BatchReader& reader, const std::vector<std::string>& units,
                         const TakePoint& take) {
  uint64_t at = 0;
  while (reader.left() > 0) {
    const auto series = int64_t(reader.varint());
    const uint64_t kind = reader.varint();
    const uint64_t count = reader.varint();
    if (reader.failed() || kind / 2 >= units.size() || count == 0)
      return corrupt("batch of points: an invalid run");
    Sample sample;
    sample.unit = units[kind / 2];
    for (uint64_t i = 0; i < count; ++i) {
      at += uint64_t(from_zigzag(reader.varint()));
      sample.at = from_milliseconds(int64_t(at));
      sample.sum = sample.minimum = sample.maximum = reader.real();
      if (kind % 2 == 1) {
        sample.count = reader.real();
        sample.minimum = reader.real();
        sample.maximum = reader.real();
      }
      if (reader.failed()) return corrupt("batch of points: a run is cut off");
      take(series, sample);
    }
  }
  return ok();
}

}  // namespace

void PointBatch::add(int64_t series, const Sample& sample) {
  CHECK(sample.unit.size() <= kUnitBytesMax, "units are limited when they are received");
  const bool plain = is_plain(sample);
  const bool same_unit = run_unit_ < unit_names_.size() && unit_names_[run_unit_] == sample.unit;
  if (run_count_ == 0 || series != run_series_ || plain != run_plain_ || !same_unit) {
    end_run();
    if (!same_unit) {
      const auto [unit, added] = units_.try_emplace(sample.unit, unit_names_.size());
      if (added) unit_names_.push_back(sample.unit);
      run_unit_ = unit->second;
    }
    run_series_ = series;
    run_plain_ = plain;
  }
  const int64_t at = to_milliseconds(sample.at);
  append_varint(run_, to_zigzag(int64_t(uint64_t(at) - uint64_t(at_))));
  at_ = at;
  put(run_, sample.sum);
  if (!plain) {
    put(run_, sample.count);
    put(run_, sample.minimum);
    put(run_, sample.maximum);
  }
  ++run_count_;
}

void PointBatch::end_run() {
  if (run_count_ == 0) return;
  append_varint(runs_, uint64_t(run_series_));
  append_varint(runs_, run_unit_ * 2 + (run_plain_ ? 0 : 1));
  append_varint(runs_, run_count_);
  runs_ += run_;
  run_.clear();
  run_count_ = 0;
}

std::string PointBatch::finish() {
  end_run();
  std::string bytes;
  put(bytes, kPointBatchVersion);
  append_varint(bytes, unit_names_.size());
  for (const std::string& unit : unit_names_) {
    append_varint(bytes, unit.size());
    bytes += unit;
  }
  bytes += runs_;
  put(bytes, Crc32::of(bytes));
  return bytes;
}

Result<void> decode_point_batch(std::string_view bytes, const TakePoint& take) {
  if (bytes.size() < 1 + kPointBatchChecksumBytes)
    return corrupt("batch of points: it ends after " + std::to_string(bytes.size()) + " bytes");
  const std::string_view body = bytes.substr(0, bytes.size() - kPointBatchChecksumBytes);
  if (get<uint32_t>(bytes, body.size()) != Crc32::of(body))
    return corrupt("batch of points: it does not match its checksum");
  if (const auto version = get<uint8_t>(body, 0); version != kPointBatchVersion)
    return corrupt("batch of points: version " + std::to_string(version) + ", known is " +
                   std::to_string(kPointBatchVersion));
  BatchReader reader(body.substr(1));
  const uint64_t unit_count = reader.varint();
  if (unit_count > reader.left()) return corrupt("batch of points: units are cut off");
  std::vector<std::string> units(unit_count);
  for (std::string& unit : units) unit = reader.text(kUnitBytesMax);
  if (reader.failed()) return corrupt("batch of points: units are cut off");
  return decode_runs(reader, units, take);
}

}  // namespace trainyard::observe
