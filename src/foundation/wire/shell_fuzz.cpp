// decoder: src/foundation/wire/shell.cpp
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "wire/shell.hpp"

// Feeds the input in two pieces, split at the position in its first byte. Decoded frames are
// encoded to the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::wire;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = bytes.empty() ? 0 : data[0] % bytes.size();
  ShellDecoder decoder;
  std::string again;
  for (const auto piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
    decoder.feed(piece);
    for (;;) {
      const auto frame = decoder.next();
      if (!frame) return 0;
      if (!*frame) break;
      again += encode_shell(**frame);
    }
  }
  if (bytes.substr(0, again.size()) != again) std::abort();
  return 0;
}
