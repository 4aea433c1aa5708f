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
  return 0;
}
