// Decodes any bytes as a message of another region's leader. A decoded message encodes to the same
// bytes, and a RegionGroup handles it.
// decoder: src/compute/local_sgd/messages.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "local_sgd/region_group.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::local_sgd;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (bytes.size() > message_bytes_max(2)) return 0;  // links reject longer messages
  const auto message = decode_message(bytes);
  if (!message) return 0;
  CHECK(encode(*message) == bytes, "a message has exactly one encoding");
  // The first byte selects the state of the group that receives the message.
  Replica replica({1, 2}, "", {}, Coding::bf16);
  RegionGroup region_group(replica, 1, 3);
  region_group.linked(0);
  if (data[0] & 1) region_group.received(0, Join{0, replica.digest(), 2});
  if (data[0] & 2) region_group.form_with(1);
  if (region_group.is_member() && (data[0] & 4)) {
    const float trained[] = {3, 4};
    region_group.offer(*replica.offer(trained, 1));
  }
  region_group.received(0, *message);
  region_group.lost(0);
  return 0;
}
