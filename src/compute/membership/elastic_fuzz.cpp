// Decodes any bytes as a message of an elastic training. A decoded message encodes and decodes to
// the same message.
// decoder: src/compute/membership/messages.cpp
#include "base/check.hpp"
#include "membership/messages.hpp"

using namespace trainyard;
using namespace trainyard::membership;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = decode_message({reinterpret_cast<const char*>(data), size});
  if (!message) return 0;
  const auto again = decode_message(encode(*message));
  CHECK(again && *again == *message, "an encoded message decodes to the same message");
  return 0;
}
