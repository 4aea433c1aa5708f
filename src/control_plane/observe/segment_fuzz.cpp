// decoder: src/control_plane/observe/segment.cpp
//
// Decodes any bytes as a segment and as an index; the result encodes to the same bytes.
#include "base/check.hpp"
#include "observe/segment.hpp"

using namespace trainyard;
using namespace trainyard::observe;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  size_t records_at = 0;
  if (const auto header = decode_segment_header(bytes)) {
    CHECK(encode_segment_header(header->header) == bytes.substr(0, header->bytes),
          "a header has one form");
    records_at = header->bytes;
  }
  RecordReader reader(bytes.substr(records_at));
  std::string again;
  size_t end = 0;
  for (;;) {
    const auto record = reader.next();
    if (!record || !*record) break;
    if ((*record)->event) {
      encode_event(again, *(*record)->event);
      CHECK(
          (*record)->end - (*record)->begin == event_record_bytes((*record)->event->message.size()),
          "sizes agree");
    } else {
      encode_commit(again, *(*record)->last_batch);
      CHECK((*record)->end - (*record)->begin == commit_record_bytes(), "sizes agree");
    }
    end = (*record)->end;
  }
  CHECK(again == bytes.substr(records_at, end), "a record has one form");

  for (size_t at = 0; at + kIndexEntryBytes <= size; at += kIndexEntryBytes) {
    const auto block = decode_index_entry(bytes.substr(at));
    if (!block) break;
    std::string entry;
    encode_index_entry(entry, *block);
    CHECK(entry == bytes.substr(at, kIndexEntryBytes), "an entry has one form");
  }
  return 0;
}
