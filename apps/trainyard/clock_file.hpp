// The clock file of a data directory holds the state that control's time needs over a restart
// (control/control_time.hpp, docs/decisions/32).
//
// Threads: `keep` may be called from anywhere. Errors: none: a file that cannot be read counts as missing,
// with a line in the log.
#pragma once

#include <string>

#include "control/control_time.hpp"

namespace trainyard::apps {

// A server that did not run for this long was stopped, or its machine suspended. Far longer than the
// reconcile interval.
inline constexpr Duration kUnwatchedTimeMax = 30s;

// The boot id of this machine, the record in `path`, and a function that writes it there durably.
control::ClockSettings clock_settings(const std::string& path);

}  // namespace trainyard::apps
