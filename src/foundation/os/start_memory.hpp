// Releases memory that only the start of the program needed.
//
// Threads: callable from anywhere; other threads may run. Errors: none.
#pragma once

namespace trainyard::os {

// Returns free heap to the kernel, and unmaps the pages of code and constants of the program and
// its libraries, most of which only the start uses. The pages stay in the kernel's page cache. A
// page that is needed again is mapped from there, without reading the disk.
void release_start_memory();

}  // namespace trainyard::os
