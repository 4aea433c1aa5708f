// decoder: src/control_plane/observe/filter_pattern.cpp
//
// Matches any pattern with any message, and finds any value in it. Input: PATTERN newline MESSAGE;
// the pattern is also used as the selector.
#include "base/check.hpp"
#include "observe/filter_pattern.hpp"

using namespace trainyard::observe;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t newline = bytes.find('\n');
  const std::string_view message =
      newline == std::string_view::npos ? std::string_view() : bytes.substr(newline + 1);
  if (const auto selector = FilterSelector::parse(bytes.substr(0, newline)))
    (void)selector->find(FilterMessage(message), {});
  const auto pattern = FilterPattern::parse(bytes.substr(0, newline));
  if (!pattern) {
    CHECK(pattern.error().message.starts_with("Invalid filter pattern: "),
          "parse() returns only explained errors");
    return 0;
  }
  CHECK(pattern->matches(message) == pattern->extract(message).has_value(),
        "a message with values matches");
  return 0;
}
