// Compiles any pattern and compares it with any document: both end in bounded time, and the same
// document has the same result. Input: the pattern, a line break, the document.
//
// decoder: src/control_plane/notify/pattern.cpp
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "notify/pattern.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = text.find('\n');
  const auto pattern = notify::Pattern::compile(text.substr(0, line), 4096);
  if (!pattern || line == text.npos) return 0;
  const auto document = parse_json(text.substr(line + 1));
  if (!document) return 0;
  const auto first = pattern->matches(*document), second = pattern->matches(*document);
  if (bool(first) != bool(second) || (first && *first != *second)) std::abort();
  return 0;
}
