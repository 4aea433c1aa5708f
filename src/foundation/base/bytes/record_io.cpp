#include "base/bytes/record_io.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard {
namespace {

// Once this number of bytes of the buffer has been decoded, the rest is moved to its front.
constexpr size_t kMoveBytes = 64 << 10;

}  // namespace

std::array<char, kRecordHeadBytes> record_head(uint64_t bytes) {
  CHECK(bytes <= kRecordBytesMax, "the length of a record has 29 bits");
  std::string packed;
  append_little_endian(packed, kRecordMagic, 4);
  append_little_endian(packed, bytes, 4);
  std::array<char, kRecordHeadBytes> head{};
  std::ranges::copy(packed, head.begin());
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
    if (little_endian_u32(rest) != kRecordMagic)
      return corrupt("a record does not begin with RecordIO's magic");
    const uint32_t word = little_endian_u32(rest.substr(4));
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
    return corrupt(begins ? "a record begins within another"
                          : "a part of a record has no beginning");
  if (begins) {
    split_ = std::string(payload);
    return {};
  }
  append_little_endian(*split_, kRecordMagic, 4);
  split_->append(payload);
  return {};
}

Result<void> RecordDecoder::finish() const {
  if (split_ || at_ != buffer_.size()) return corrupt("the bytes end within a record");
  return {};
}

}  // namespace trainyard
