// What another server says of a principal, and what a campaign keeps of one: what is read is read again from what is
// written of it.
// decoder: src/api/auth/delegation.cpp
#include <cstddef>
#include <cstdint>

#include "api/auth/delegation.hpp"
#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const auto read = api::parse_delegation({reinterpret_cast<const char*>(data), size});
  if (!read) return 0;
  // What was read can be written, and is read the same again.
  const auto text = api::format_delegation(*read);
  if (!text) return 0;
  const auto again = api::parse_delegation(*text);
  CHECK(bool(again), "what was written is read");
  CHECK(*api::format_delegation(*again) == *text, "and is the same");
  return 0;
}
