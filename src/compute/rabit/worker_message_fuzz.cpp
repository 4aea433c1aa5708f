// Decodes any bytes as a worker's first message, whole and in pieces, to the same message.
// decoder: src/compute/rabit/worker_message.cpp
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "rabit/worker_message.hpp"

namespace {

using namespace trainyard;
using namespace trainyard::rabit;

std::string decoded(std::string_view bytes, size_t step) {
  WorkerMessageDecoder decoder;
  for (size_t at = 0; at < bytes.size(); at += step) {
    const auto message = decoder.push(bytes.substr(at, step));
    if (!message) return "!" + message.error().message;
    if (!*message) continue;
    if (!decoder.has_magic()) __builtin_trap();
    const std::string again = encode(**message);
    WorkerMessageDecoder second;
    const auto same = second.push(again);
    // Ill-formed UTF-8 was replaced, which may make a text longer than its limit.
    if (same && (!*same || encode(**same) != again)) __builtin_trap();
    return again;
  }
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (decoded(bytes, 3) != decoded(bytes, size + 1)) __builtin_trap();
  return 0;
}
