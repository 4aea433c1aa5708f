// Reads any bytes as a spool file: a crash, a disk or an attacker may have left them.
// decoder: src/job/agent/report/spool_records.cpp
#include "agent/report/spool.hpp"
#include "base/check.hpp"
#include "wire/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto records = trainyard::agent::read_spool_records(bytes);
  CHECK(records.whole_bytes <= bytes.size(), "records lie within the bytes");
  std::string again;
  for (const auto payload : records.payloads) {
    (void)trainyard::wire::decode(payload);
    again += trainyard::agent::spool_record(payload);
  }
  CHECK(again == bytes.substr(0, records.whole_bytes), "what is read is what was written");
  return 0;
}
