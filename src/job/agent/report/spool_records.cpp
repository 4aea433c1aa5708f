// Reads and writes the records of a spool file: grammar in docs/formats/spool.md.
#include "agent/report/spool.hpp"
#include "base/bytes/crc.hpp"
#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "wire/codec.hpp"

namespace trainyard::agent {
std::string spool_record(std::string_view payload) {
  CHECK(payload.size() <= wire::kFrameBytesMax, "a spooled fact must fit a frame");
  std::string record;
  record.reserve(kSpoolHeaderBytes + payload.size());
  append_little_endian(record, payload.size(), 4);
  append_little_endian(record, Crc32::of(payload), 4);
  record += payload;
  return record;
}

SpoolRecords read_spool_records(std::string_view bytes) {
  SpoolRecords records;
  for (;;) {
    const auto rest = bytes.substr(records.whole_bytes);
    if (rest.size() < kSpoolHeaderBytes) return records;
    const uint32_t length = little_endian_u32(rest);
    if (length == 0 || length > wire::kFrameBytesMax || length > rest.size() - kSpoolHeaderBytes)
      return records;
    const auto payload = rest.substr(kSpoolHeaderBytes, length);
    if (Crc32::of(payload) != little_endian_u32(rest.substr(4))) return records;
    records.payloads.push_back(payload);
    records.whole_bytes += kSpoolHeaderBytes + length;
  }
}

}  // namespace trainyard::agent
