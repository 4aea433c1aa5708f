// decoder: src/control_plane/remote_write/snappy.cpp
//
// Decompresses any bytes: decompression ends within its limit, and what it returns reads back
// after it is compressed again. Any bytes read back, too.
#include "base/check.hpp"
#include "remote_write/snappy.hpp"

using namespace trainyard;
using namespace trainyard::remote_write;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 1 << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto whole = snappy_decompress(bytes, kBytesMax)) {
    CHECK(whole->size() <= kBytesMax, "the limit is kept");
    CHECK(*snappy_decompress(snappy_compress(*whole), kBytesMax) == *whole, "it reads back");
  }
  CHECK(*snappy_decompress(snappy_compress(bytes), size) == bytes, "any bytes read back");
  return 0;
}
