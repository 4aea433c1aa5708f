// Formats an event of EventBridge as a line.
//
// Threads: pure. Errors: none; members that are missing are left out.
#pragma once

#include <string>

#include "base/json.hpp"
#include "cli/layout.hpp"

namespace trainyard::cli {

// Formats "2026-11-20 09:45:00Z  SageMaker Training Job State Change  mnist-1  InProgress
// Training", with a colour for the status.
std::string event_line(const OutputStyle& style, const Json& event);

}  // namespace trainyard::cli
