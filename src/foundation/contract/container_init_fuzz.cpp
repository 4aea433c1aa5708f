// decoder: src/foundation/contract/container_init.cpp
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "contract/container_init.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace trainyard::contract;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto order = decode_init_order(text)) {
    const auto again = decode_init_order(encode(*order));
    CHECK(again && encode(*again) == encode(*order), "what was written can be read");
  }
  if (const auto answer = decode_init_report(text)) {
    const auto again = decode_init_report(encode(*answer));
    CHECK(again && encode(*again) == encode(*answer), "what was written can be read");
  }
  return 0;
}
