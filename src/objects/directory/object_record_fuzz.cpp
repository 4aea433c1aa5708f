#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "objects/directory/record.hpp"

// decoder: src/objects/directory/record.cpp
// The end of a file that should be an object's: a record, a wish for more, or an error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::objects;
  const std::string_view end(reinterpret_cast<const char*>(data), size);
  const auto whole = decode_record(end, size);
  // What was read is written as it was understood.
  if (whole && *whole) {
    const std::string again = encode_record(**whole);
    const auto back = decode_record(again, (*whole)->info.bytes + again.size());
    if (!back || !*back || (*back)->info.etag != (*whole)->info.etag) __builtin_trap();
  }
  (void)!decode_record(end, size + 4096);
  // The same from a file, which is read from its end.
  static const int file = memfd_create("record", 0);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != ssize_t(size)) __builtin_trap();
  (void)!read_record(file, "record");
  return 0;
}
