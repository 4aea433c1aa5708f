#include "data/record_io.hpp"

#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::data {
namespace {

// Once so many bytes of the buffer are read, the rest moves to its front.
constexpr size_t kMoveBytes = 64 << 10;

std::array<char, 4> little_endian(uint32_t value) {
  return {static_cast<char>(value), static_cast<char>(value >> 8), static_cast<char>(value >> 16),
          static_cast<char>(value >> 24)};
}

uint32_t from_little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::array<char, kRecordHeadBytes> record_head(uint64_t bytes) {
  CHECK(bytes <= kRecordBytesMax, "one record's length has 29 bits");
  std::array<char, kRecordHeadBytes> head{};
  const auto magic = little_endian(kRecordMagic),
             length = little_endian(static_cast<uint32_t>(bytes));
  for (size_t i = 0; i < 4; ++i) {
    head[i] = magic[i];
    head[4 + i] = length[i];
  }
  return head;
}

size_t record_padding(uint64_t bytes) { return (4 - bytes % 4) % 4; }

Result<std::optional<std::string>> RecordDecoder::next() {
  for (;;) {
    if (at_ > kMoveBytes) {
      buffer_.erase(0, at_);
      at_ = 0;
    }
    const std::string_view rest = std::string_view(buffer_).substr(at_);
    if (rest.size() < kRecordHeadBytes) return std::optional<std::string>();
    if (from_little_endian(rest) != kRecordMagic)
      return corrupt("a record does not begin with RecordIO's magic");
    const uint32_t word = from_little_endian(rest.substr(4));
    const uint32_t flag = word >> 29, length = word & kRecordBytesMax;
    // The magic that a split omitted is inserted between two parts.
    if (length + (split_ ? split_->size() + sizeof kRecordMagic : 0) > record_bytes_max_)
      return exhausted("a record is longer than " + human_bytes(record_bytes_max_));
    const size_t whole = kRecordHeadBytes + length + record_padding(length);
    if (rest.size() < whole) return std::optional<std::string>();
    TRY(take_part(flag, rest.substr(kRecordHeadBytes, length)));
    at_ += whole;
    if (flag == 0 || flag == 3) return std::exchange(split_, std::nullopt);
  }
}

Result<void> RecordDecoder::take_part(uint32_t flag, std::string_view payload) {
  if (flag > 3) return corrupt("a record's flag is " + std::to_string(flag));
  const bool begins = flag == 0 || flag == 1;
  if (begins == split_.has_value())
    return corrupt(begins ? "a record begins within another" : "a record's part has no beginning");
  if (begins) {
    split_ = std::string(payload);
    return {};
  }
  const auto magic = little_endian(kRecordMagic);
  split_->append(magic.data(), magic.size()).append(payload);
  return {};
}

Result<void> RecordDecoder::finish() const {
  if (split_ || at_ != buffer_.size()) return corrupt("the bytes end within a record");
  return {};
}

}  // namespace trainyard::data
