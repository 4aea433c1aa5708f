// The bytes of a segment, the file that a part of a log stream lies in, and of its index.
//
// A segment is a header and records; an append is its events' records and one commit record. What follows the
// last commit record was never acknowledged and does not count. Grammar and sizes: docs/formats/logs.md.
//
// Threads: pure. Errors: corrupt, naming what is wrong. Whatever is read is hostile until decoded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "observe/logs.hpp"

namespace trainyard::observe {

// Longer messages are stored in pieces of this length (as AWS does): bounds what one record costs a reader.
inline constexpr size_t kMessageBytesMax = 256 << 10;
inline constexpr size_t kRecordHeaderBytes = 8;
inline constexpr size_t kSegmentHeaderBytesMax = 8 << 10;  // three names of at most 2 KiB

struct SegmentHeader {
  uint64_t stream = 0;  // its number in the catalogue
  uint64_t base = 0;    // position of the first record
  StreamKey key;        // so that logs can be read without the catalogue
};

std::string encode_segment_header(const SegmentHeader& header);
struct DecodedSegmentHeader {
  SegmentHeader header;
  size_t bytes = 0;  // where the records begin
};
// `bytes` may go on after the header.
Result<DecodedSegmentHeader> decode_segment_header(std::string_view bytes);

struct EventRecord {
  int64_t at = 0;        // milliseconds since 1970
  int64_t ingested = 0;  // milliseconds since 1970
  std::string_view message;
};
void encode_event(std::string& bytes, const EventRecord& event);
void encode_commit(std::string& bytes, uint64_t last_batch);
size_t event_record_bytes(size_t message_bytes);
size_t commit_record_bytes();

// Walks over records.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}

  struct Record {
    std::optional<EventRecord> event;    // either an event,
    std::optional<uint64_t> last_batch;  // or a commit
    size_t begin = 0;
    size_t end = 0;
  };
  // Nothing at the end of the bytes. Errors: corrupt, also when the bytes end within a record; then it stays
  // there. Lifetime: the message lies in the bytes given to the constructor.
  Result<std::optional<Record>> next();

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// One entry of the index: a run of whole appends.
struct Block {
  uint64_t begin = 0;  // position
  uint64_t end = 0;    // position after it
  int64_t first = 0;   // least and greatest event time; first > last when there is no event
  int64_t last = 0;
  int64_t ingested = 0;     // greatest ingestion time
  uint64_t last_batch = 0;  // at its end
};
inline constexpr size_t kIndexEntryBytes = 56;
void encode_index_entry(std::string& bytes, const Block& block);
// Errors: corrupt. Requires: bytes.size() >= kIndexEntryBytes.
Result<Block> decode_index_entry(std::string_view bytes);

}  // namespace trainyard::observe
