#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "objects/checksum.hpp"
#include "objects/directory/part_list.hpp"
#include "objects/directory/record.hpp"

// decoder: src/foundation/objects/directory/record.cpp
// decoder: src/foundation/objects/directory/part_list.cpp
// Decodes any bytes as the end of an object's file: to a record, to a request for more bytes, or to
// an error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::objects;
  const std::string_view end(reinterpret_cast<const char*>(data), size);
  const auto whole = decode_record(end, size);
  // Decoded values are encoded unchanged.
  if (whole && *whole) {
    const std::string again = encode_record(**whole);
    const auto back = decode_record(again, body_bytes(**whole) + again.size());
    if (!back || !*back || (*back)->info.etag != (*whole)->info.etag) __builtin_trap();
  }
  (void)!decode_record(end, size + 4096);
  // Makes a list of parts with a matching checksum, which random bytes would never have.
  using trainyard::objects::checksum_of;
  const std::string sum = checksum_of("crc32c", end);
  uint64_t bytes = 0;
  for (size_t at = 0; at + 28 <= size; at += 28)
    for (size_t i = 0; i < 8; ++i) bytes += uint64_t(data[at + 4 + i]) << (8 * i);
  const auto parts =
      decode_part_list(std::string(end) + std::string(sum.rbegin(), sum.rend()), bytes);
  if (parts && encode_part_list(*parts).substr(0, size) != end) __builtin_trap();
  // Decodes the same bytes from a file, which is read from its end.
  static const int file = memfd_create("record", 0);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size)) __builtin_trap();
  (void)!read_record(file, "record");
  return 0;
}
