// Whatever an agent or a server sends is decoded or refused; what is decoded encodes to the same bytes again.
// decoder: src/wire/codec.cpp src/base/fields.hpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "wire/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = wire::decode(bytes))
    CHECK(wire::encode(*message) == bytes, "the codec has one form a message");
  if (bytes.starts_with('{')) {
    if (const auto order = wire::decode_order(bytes))
      CHECK(wire::decode_order(wire::encode_order(*order)),
            "an order that was read can be written and read again");
  }
  return 0;
}
