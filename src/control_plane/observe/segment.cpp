#include "observe/segment.hpp"

#include "base/bytes/crc.hpp"
#include "base/check.hpp"
#include "observe/bytes.hpp"

namespace trainyard::observe {
namespace {

constexpr std::string_view kMagic = "TYLOGSEG";
constexpr uint32_t kSegmentVersion = 1;
constexpr uint8_t kEvent = 1;
constexpr uint8_t kCommit = 2;
constexpr size_t kEventFixedBytes = 1 + 8 + 8;
constexpr size_t kCommitBytes = 1 + 8;
constexpr size_t kBodyBytesMax = kEventFixedBytes + kMessageBytesMax;
constexpr size_t kHeaderFixedBytes = 8 + 4 + 8 + 8 + 3 * 4;

// Fills in the header of the record at `begin`.
void close_record(std::string& bytes, size_t begin) {
  const uint32_t length = uint32_t(bytes.size() - begin - kRecordHeaderBytes);
  std::memcpy(bytes.data() + begin, &length, 4);
  // The checksum covers the length too, so that a run of zeros (a hole after a crash) is not a
  // valid record.
  const uint32_t checksum = Crc32::of(std::string_view(bytes).substr(begin + kRecordHeaderBytes)) ^
                            Crc32::of({bytes.data() + begin, 4});
  std::memcpy(bytes.data() + begin + 4, &checksum, 4);
}

}  // namespace

std::string encode_segment_header(const SegmentHeader& header) {
  std::string bytes(kMagic);
  put(bytes, kSegmentVersion);
  put(bytes, header.stream);
  put(bytes, header.base);
  for (const auto* name : {&header.key.region, &header.key.group, &header.key.stream})
    put(bytes, uint32_t(name->size()));
  bytes += header.key.region + header.key.group + header.key.stream;
  put(bytes, Crc32::of(bytes));
  CHECK(bytes.size() <= kSegmentHeaderBytesMax, "names are limited when they are received");
  return bytes;
}

Result<DecodedSegmentHeader> decode_segment_header(std::string_view bytes) {
  if (bytes.size() < kHeaderFixedBytes + 4)
    return corrupt("segment header: it ends after " + std::to_string(bytes.size()) + " bytes");
  if (!bytes.starts_with(kMagic)) return corrupt("segment header: not a segment");
  if (const auto version = get<uint32_t>(bytes, 8); version != kSegmentVersion)
    return corrupt("segment header: unknown version " + std::to_string(version) + ", expected " +
                   std::to_string(kSegmentVersion));
  DecodedSegmentHeader decoded;
  decoded.header.stream = get<uint64_t>(bytes, 12);
  decoded.header.base = get<uint64_t>(bytes, 20);
  size_t at = kHeaderFixedBytes;
  int name_index = 0;
  for (auto* name :
       {&decoded.header.key.region, &decoded.header.key.group, &decoded.header.key.stream}) {
    const auto length = get<uint32_t>(bytes, 28 + 4 * size_t(name_index++));
    if (length > kSegmentHeaderBytesMax || at + length + 4 > bytes.size())
      return corrupt("segment header: a name ends beyond the header");
    name->assign(bytes.substr(at, length));
    at += length;
  }
  if (get<uint32_t>(bytes, at) != Crc32::of(bytes.substr(0, at)))
    return corrupt("segment header: it does not match its checksum");
  decoded.bytes = at + 4;
  return decoded;
}

void encode_event(std::string& bytes, const EventRecord& event) {
  CHECK(event.message.size() <= kMessageBytesMax, "longer messages are split by the caller");
  const size_t begin = bytes.size();
  bytes.append(kRecordHeaderBytes, '\0');
  put(bytes, kEvent);
  put(bytes, event.at);
  put(bytes, event.ingested);
  bytes += event.message;
  close_record(bytes, begin);
}

void encode_commit(std::string& bytes, uint64_t last_batch) {
  const size_t begin = bytes.size();
  bytes.append(kRecordHeaderBytes, '\0');
  put(bytes, kCommit);
  put(bytes, last_batch);
  close_record(bytes, begin);
}

size_t event_record_bytes(size_t message_bytes) {
  return kRecordHeaderBytes + kEventFixedBytes + message_bytes;
}
size_t commit_record_bytes() { return kRecordHeaderBytes + kCommitBytes; }

Result<const RecordReader::Record*> RecordReader::next() {
  const std::string_view left(bytes_.data() + at_, bytes_.size() - at_);
  if (left.empty()) return static_cast<const Record*>(nullptr);
  if (left.size() < kRecordHeaderBytes) return corrupt("a record's header is cut off");
  const auto length = get<uint32_t>(left, 0);
  if (length == 0 || length > kBodyBytesMax)
    return corrupt("a record says that it has " + std::to_string(length) + " bytes");
  if (left.size() < kRecordHeaderBytes + length) return corrupt("a record is cut off");
  const std::string_view body(left.data() + kRecordHeaderBytes, length);
  if (get<uint32_t>(left, 4) != (Crc32::of(body) ^ Crc32::of({left.data(), 4})))
    return corrupt("a record does not match its checksum");

  if (body[0] == kEvent && length >= kEventFixedBytes) {
    record_.event =
        EventRecord{get<int64_t>(body, 1), get<int64_t>(body, 9), body.substr(kEventFixedBytes)};
    record_.last_batch.reset();
  } else if (body[0] == kCommit && length == kCommitBytes) {
    record_.event.reset();
    record_.last_batch = get<uint64_t>(body, 1);
  } else {
    return corrupt("a record of kind " + std::to_string(int(uint8_t(body[0]))) + " with " +
                   std::to_string(length) + " bytes");
  }
  record_.begin = at_;
  record_.end = at_ = at_ + kRecordHeaderBytes + length;
  return static_cast<const Record*>(&record_);
}

void encode_index_entry(std::string& bytes, const Block& block) {
  const size_t begin = bytes.size();
  for (const uint64_t number : {block.begin, block.end, uint64_t(block.first), uint64_t(block.last),
                                uint64_t(block.ingested), block.last_batch})
    put(bytes, number);
  put(bytes, uint64_t(Crc32::of(std::string_view(bytes).substr(begin))));
  CHECK(bytes.size() - begin == kIndexEntryBytes, "the format says so");
}

Result<Block> decode_index_entry(std::string_view bytes) {
  CHECK(bytes.size() >= kIndexEntryBytes, "required of the caller");
  if (get<uint64_t>(bytes, 48) != Crc32::of(bytes.substr(0, 48)))
    return corrupt("an index entry does not match its checksum");
  const Block block{.begin = get<uint64_t>(bytes, 0),
                    .end = get<uint64_t>(bytes, 8),
                    .first = get<int64_t>(bytes, 16),
                    .last = get<int64_t>(bytes, 24),
                    .ingested = get<int64_t>(bytes, 32),
                    .last_batch = get<uint64_t>(bytes, 40)};
  if (block.begin >= block.end) return corrupt("an index entry covers nothing");
  return block;
}

}  // namespace trainyard::observe
