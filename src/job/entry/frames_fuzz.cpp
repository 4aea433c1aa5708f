// Decodes or rejects any bytes that a process in a gang's network sends. Decoded messages encode to
// the same bytes, and pass through a sealed stream unchanged.
// decoder: src/job/entry/frames.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "entry/frames.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::entry;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = decode(bytes)) {
    CHECK(encode(*message) == bytes, "a message has exactly one encoding");
    const std::string key = session_key("secret", "challenge", "join");
    Sealer sealer(key, kToLeader);
    Opener opener;
    opener.expect_seals(key, kToLeader);
    for (int i = 0; i < 2; ++i) opener.add(sealer.seal(*message));
    for (int i = 0; i < 2; ++i) {
      const auto opened = opener.next();
      CHECK(opened && *opened && encode(**opened) == bytes,
            "a sealed message is read as it was written");
    }
    if (const auto* join = std::get_if<Join>(&*message))
      CHECK(proof_of_host("secret", "challenge", *join).size() == 32, "a proof is a digest");
  }
  for (const bool sealed : {false, true}) {
    Opener opener;
    if (sealed) opener.expect_seals("key", kFromLeader);
    opener.add(bytes);
    for (int messages = 0; messages < 1000; ++messages) {
      const auto message = opener.next();
      if (!message || !*message) break;
    }
  }
  return 0;
}
