// The first process of a container that asked for one (initProcessEnabled): what a program of a user's need not know of
// being the first is done here.
//
// Threads: the caller's one; nothing else runs in the process. Errors: none; the exit code tells.
#pragma once

#include <string>
#include <vector>

namespace trainyard::entry {

// "--init PROGRAM ARGUMENT..": starts the program, passes on to it each signal that comes (a first process that handles
// none would get none), reaps whoever is left to the first process, and ends when the program ends, with its code: 128+n
// for signal n, 127 when it is not found, 126 when it cannot be run.
int run_init(const std::vector<std::string>& arguments);

}  // namespace trainyard::entry
