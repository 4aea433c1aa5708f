// Whatever another region's leader sends is decoded or refused; what is decoded encodes to the same bytes again, and a
// council survives hearing it.
// decoder: src/compute/local_sgd/messages.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "local_sgd/council.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::local_sgd;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto message = decode_message(bytes);
  if (!message) return 0;
  CHECK(encode(*message) == bytes, "the codec has one form a message");
  // The first byte: what we are when we hear it.
  Replica replica({1, 2}, "", {}, Coding::bf16);
  Council council(replica, 1, 3);
  council.linked(0);
  if (data[0] & 1) council.heard(0, Join{0, replica.digest(), 2});
  if (data[0] & 2) council.found_with(1);
  if (council.is_member() && (data[0] & 4)) {
    const float trained[] = {3, 4};
    council.offer(*replica.offer(trained, 1));
  }
  council.heard(0, *message);
  council.lost(0);
  return 0;
}
