// Decodes pins of the cache: files that a crash or a broken disk may have changed.
// decoder: src/job/cache/pin.cpp
#include <string_view>

#include "base/bytes/crc.hpp"
#include "base/bytes/little_endian.hpp"
#include "cache/pin.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  // A pin that is accepted has exactly the bytes that would be written.
  const auto pin = cache::decode_pin(file);
  if (pin && cache::encode_pin(*pin) != file) __builtin_trap();
  // The same after a correct checksum.
  std::string valid = "TYPINS01";
  append_little_endian(valid, Crc32c::of(file), 4);
  valid += file;
  const auto other = cache::decode_pin(valid);
  if (other && cache::encode_pin(*other) != valid) __builtin_trap();
  return 0;
}
