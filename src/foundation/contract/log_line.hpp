// Formats log lines as SageMaker's algorithms do: "[11/27/2026 09:45:00 INFO 1] TEXT".
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

#include "base/time.hpp"

namespace trainyard::contract {

// Returns a line with the time in UTC. The number, as in SageMaker's lines, is a thread: always 1.
std::string log_line(Instant at, std::string_view text);

}  // namespace trainyard::contract
