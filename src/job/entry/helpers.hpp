// What a launcher starts instead of ssh and instead of a rank: both are this program again, and report to the
// entry of their host.
//
// Threads: the caller's one. Errors: none; the exit code tells.
#pragma once

#include <string>
#include <vector>

#include "entry/settings.hpp"

namespace trainyard::entry {

// "--start-on HOST WORD..": runs that line on another host of the gang, as ssh would, until it ends there.
int start_on(const std::vector<std::string>& arguments);

// "--rank PROGRAM ARGUMENT..": runs a rank, keeps what it says last, and reports it when it fails; ends as it
// ended.
int run_rank(const std::vector<std::string>& arguments, const Variables& variables);

}  // namespace trainyard::entry
