// Checks that any bytes are decoded, skipped or rejected as a message and as an order, and that a
// decoded message is encoded in the form of this version.
// decoder: src/foundation/wire/codec.cpp src/foundation/base/bytes/fields.hpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "wire/codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = wire::decode(bytes);
      message && !std::holds_alternative<wire::Unknown>(*message)) {
    const std::string known = wire::encode(*message);
    CHECK(known.size() <= bytes.size() + sizeof(uint32_t), "encoding adds at most the version");
    const auto again = wire::decode(known);
    CHECK(again && wire::encode(*again) == known, "a message has exactly one encoding");
    if (const auto* hello = std::get_if<wire::Hello>(&*message)) {
      (void)wire::versions_text(*hello);
      const auto common = wire::common_version(*hello);
      CHECK(!common || (*common >= wire::kVersionOldest && *common <= wire::kVersion),
            "a version that this program supports");
    }
  }
  if (bytes.starts_with('{')) {
    if (const auto order = wire::decode_order(bytes)) {
      (void)wire::hello_of(*order);
      CHECK(wire::decode_order(wire::encode_order(*order)),
            "an order that was read can be written and read again");
    }
  }
  return 0;
}
