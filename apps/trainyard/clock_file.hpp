// Stores the state that control's time needs across restarts (control/control_time.hpp,
// docs/decisions/32) in the clock file of a data directory.
//
// Threads: `keep` is callable from anywhere. Errors: none; a file that cannot be read is logged,
// and counts as missing.
#pragma once

#include <string>

#include "control/control_time.hpp"

namespace trainyard::apps {

// A longer time without an iteration means that the server was stopped or its machine suspended.
// Far longer than the reconcile interval.
inline constexpr Duration kUnwatchedTimeMax = 30s;

// Returns the machine's boot id, the record in `path`, and a function that durably replaces the
// record.
control::ClockSettings clock_settings(const std::string& path);

}  // namespace trainyard::apps
