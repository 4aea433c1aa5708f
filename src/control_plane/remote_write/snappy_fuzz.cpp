// decoder: src/control_plane/remote_write/snappy.cpp
//
// Decompresses any bytes: the result is within the limit, and stays the same when it is compressed
// and decompressed again. Any bytes stay the same when they are compressed and decompressed.
#include "base/check.hpp"
#include "remote_write/snappy.hpp"

using namespace trainyard;
using namespace trainyard::remote_write;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 1 << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto whole = snappy_decompress(bytes, kBytesMax)) {
    CHECK(whole->size() <= kBytesMax, "the result is within the limit");
    CHECK(*snappy_decompress(snappy_compress(*whole), kBytesMax) == *whole,
          "the result round-trips");
  }
  CHECK(*snappy_decompress(snappy_compress(bytes), size) == bytes, "any bytes round-trip");
  return 0;
}
