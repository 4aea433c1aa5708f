// Formats log lines as SageMaker's algorithms do: "[11/27/2026 09:45:00 INFO 1] TEXT".
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace trainyard::contract {

// Returns a line with the time in UTC. The number, as in SageMaker's lines, is a thread: always 1.
std::string log_line(Instant at, std::string_view text);

// Formats a line as printf does; what is longer than 511 bytes is cut off.
template <class... Arguments>
std::string format_line(const char* pattern, Arguments... arguments) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, arguments...);
  return text;
}

}  // namespace trainyard::contract
