// What a peer may send to those who seat the members of an elastic training, or in their name. What decodes must
// decode to the same again.
// decoder: src/compute/membership/messages.cpp
#include "base/check.hpp"
#include "membership/messages.hpp"

using namespace trainyard;
using namespace trainyard::membership;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = decode_message({reinterpret_cast<const char*>(data), size});
  if (!message) return 0;
  const auto again = decode_message(encode(*message));
  CHECK(again && *again == *message, "a message that decodes is the one that encodes");
  return 0;
}
