// Parses any query, and evaluates it over messages if it is valid. Input: the query on one line,
// then messages.
// decoder: src/control_plane/insights/parser.cpp
#include <cstdint>

#include "base/check.hpp"
#include "base/text.hpp"
#include "insights/parser.hpp"
#include "insights/pipeline.hpp"

using namespace trainyard;
using namespace trainyard::insights;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t newline = std::min(bytes.find('\n'), bytes.size());
  const std::string text(bytes.substr(0, newline));
  const auto parsed = parse_query(text);
  if (const auto* fault = std::get_if<QueryFault>(&parsed)) {
    CHECK(fault->begin <= fault->end && fault->end <= text.size(), "an error is within the query");
    CHECK(!describe_fault(text, *fault).empty(), "an error has a description");
    return 0;
  }
  const Limits limits{.rows_max = 100, .groups_max = 100, .memory_bytes_max = 4 << 20};
  Pipeline pipeline(std::get<Query>(parsed), Instant{}, limits);
  if (newline < bytes.size()) {
    int64_t at = 0;
    for (const std::string_view message : split(bytes.substr(newline + 1), '\n')) {
      const auto more = pipeline.take(std::make_shared<const Event>(
          Event{.group = "g", .stream = "s", .at = at++, .message = std::string(message)}));
      if (!more) return 0;
      if (!*more) break;
    }
  }
  const auto rows = pipeline.finish();
  CHECK(!rows || rows->size() <= limits.rows_max, "the result is within the limit");
  return 0;
}
