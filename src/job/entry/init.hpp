// Acts as the first process of a container that requests one (initProcessEnabled), so that the
// user's program need not handle the duties of PID 1.
//
// Threads: the caller's one; there is no other in the process. Errors: none; they show in the exit
// code.
#pragma once

#include <string>
#include <vector>

namespace trainyard::entry {

// "--init PROGRAM ARGUMENT..": starts the program, forwards each signal to it (a first process
// without a handler would get none), reaps orphans, and ends when the program ends, with its code:
// 128+n for signal n, 127 when it is not found, 126 when it cannot be run.
int run_init(const std::vector<std::string>& arguments);

}  // namespace trainyard::entry
