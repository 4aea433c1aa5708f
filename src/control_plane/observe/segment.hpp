// Encodes and decodes segments, the files that contain the parts of a log stream, and their
// indexes.
//
// A segment is a header and records; an append is the records of its events and one commit record.
// Bytes after the last commit record were not acknowledged and are ignored. Grammar and sizes:
// docs/formats/logs.md.
//
// Threads: pure. Errors: corrupt, with a description. Input is untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "observe/logs.hpp"

namespace trainyard::observe {

// The maximum length of a stored message, which limits the cost of reading a record. As on AWS,
// longer messages are stored in pieces.
inline constexpr size_t kMessageBytesMax = 256 << 10;
inline constexpr size_t kRecordHeaderBytes = 8;
inline constexpr size_t kSegmentHeaderBytesMax = 8 << 10;  // three names of at most 2 KiB

struct SegmentHeader {
  uint64_t stream = 0;  // the number of the stream in the catalogue
  uint64_t base = 0;    // position of the first record
  StreamKey key;        // for reading logs without the catalogue
};

std::string encode_segment_header(const SegmentHeader& header);
struct DecodedSegmentHeader {
  SegmentHeader header;
  size_t bytes = 0;  // the length of the header: the offset of the first record
};
// `bytes` may continue after the header.
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

// A RecordReader reads records in order.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}

  struct Record {
    std::optional<EventRecord> event;    // either an event,
    std::optional<uint64_t> last_batch;  // or a commit
    size_t begin = 0;
    size_t end = 0;
  };
  // Returns the next record, or nullptr at the end of the bytes. Errors: corrupt, also if the bytes
  // end within a record; the position then stays. Lifetime: the record is valid until the next
  // call, and its message points into the bytes given to the constructor.
  Result<const Record*> next();

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  Record record_;  // returned by address: copies of it took longer than decoding it
};

// One entry of the index: a range of records.
struct Block {
  uint64_t begin = 0;  // the position of the block
  uint64_t end = 0;    // the position after it
  int64_t first = 0;   // least and greatest event time; first > last if there is no event
  int64_t last = 0;
  int64_t ingested = 0;     // greatest ingestion time
  uint64_t last_batch = 0;  // at its end
};
inline constexpr size_t kIndexEntryBytes = 56;
void encode_index_entry(std::string& bytes, const Block& block);
// Errors: corrupt. Requires: bytes.size() >= kIndexEntryBytes.
Result<Block> decode_index_entry(std::string_view bytes);

}  // namespace trainyard::observe
