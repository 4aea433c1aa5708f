// Checks that a byte stream decodes to the same records however it is split, and that encoded
// records decode unchanged.
// decoder: src/foundation/base/bytes/record_io.cpp
#include <string>
#include <string_view>

#include "base/bytes/record_io.hpp"

namespace {

using namespace trainyard;

std::string records(std::string_view bytes, size_t step) {
  RecordDecoder decoder(1 << 16);
  std::string all;
  for (size_t at = 0; at < bytes.size(); at += step) {
    decoder.push(bytes.substr(at, step));
    for (;;) {
      auto record = decoder.next();
      if (!record) return all + "!" + record.error().message;
      if (!*record) break;
      all += std::to_string((*record)->size()) + ":" + **record;
    }
  }
  return all + (decoder.finish() ? "." : "?");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (records(bytes, 3) != records(bytes, bytes.size() + 1)) __builtin_trap();
  const auto head = record_head(size);
  const std::string written = std::string(head.data(), head.size()) + std::string(bytes) +
                              std::string(record_padding(size), '\0');
  if (size <= 1 << 16 &&
      records(written, 5) != std::to_string(size) + ":" + std::string(bytes) + ".")
    __builtin_trap();
  return 0;
}
