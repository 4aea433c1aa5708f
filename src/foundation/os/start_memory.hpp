// Gives back the memory that only the start of a program needed.
//
// Threads: callable from anywhere; other threads may run. Errors: none.
#pragma once

namespace trainyard::os {

// Returns free heap to the kernel, and unmaps the code and constants of the program and its
// libraries: most of those pages are used once, by the start. They stay in the kernel's page cache,
// from where each is mapped again when it is needed, without reading the disk.
void release_start_memory();

}  // namespace trainyard::os
