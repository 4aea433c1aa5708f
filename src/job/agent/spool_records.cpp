// Reads and writes the records of a spool file: grammar in docs/formats/spool.md.
#include "agent/spool.hpp"
#include "base/check.hpp"
#include "base/crc.hpp"
#include "wire/codec.hpp"

namespace trainyard::agent {
namespace {

void put_u32(std::string& bytes, uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
}

uint32_t get_u32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace

std::string spool_record(std::string_view payload) {
  CHECK(payload.size() <= wire::kFrameBytesMax, "a spooled fact must fit a frame");
  std::string record;
  record.reserve(kSpoolHeaderBytes + payload.size());
  put_u32(record, static_cast<uint32_t>(payload.size()));
  put_u32(record, Crc32::of(payload));
  record += payload;
  return record;
}

SpoolRecords read_spool_records(std::string_view bytes) {
  SpoolRecords records;
  for (;;) {
    const auto rest = bytes.substr(records.whole_bytes);
    if (rest.size() < kSpoolHeaderBytes) return records;
    const uint32_t length = get_u32(rest);
    if (length == 0 || length > wire::kFrameBytesMax || length > rest.size() - kSpoolHeaderBytes)
      return records;
    const auto payload = rest.substr(kSpoolHeaderBytes, length);
    if (Crc32::of(payload) != get_u32(rest.substr(4))) return records;
    records.payloads.push_back(payload);
    records.whole_bytes += kSpoolHeaderBytes + length;
  }
}

}  // namespace trainyard::agent
