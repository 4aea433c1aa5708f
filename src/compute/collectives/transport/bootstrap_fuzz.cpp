// Decodes any text as the address that a member offers. The text is rejected, or the decoded
// address encodes to an equal one.
// decoder: src/compute/collectives/transport/tcp/endpoint_text.cpp
// src/compute/collectives/transport/shm/segment_address.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "collectives/transport/shm/segment_address.hpp"
#include "collectives/transport/tcp/endpoint_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::collectives;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto endpoint = decode_endpoint(text)) {
    const auto again = decode_endpoint(encode_endpoint(*endpoint));
    CHECK(again && again->host == endpoint->host && again->port == endpoint->port,
          "an endpoint decodes to itself");
  }
  if (const auto address = decode_address(text)) {
    CHECK(address->process > 0 && address->descriptor >= 0, "a decoded address is valid");
    const auto again = decode_address(encode(*address));
    CHECK(again && again->process == address->process && again->descriptor == address->descriptor &&
              again->nonce == address->nonce,
          "an address decodes to itself");
  }
  return 0;
}
