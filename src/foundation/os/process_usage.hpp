// Reads the resource usage of this process, as the kernel counts it.
//
// Threads: callable from anywhere. Errors: those of the files of /proc; corrupt, for unexpected
// text. Units: seconds, bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::os {

struct ProcessUsage {
  double cpu_seconds = 0;    // of all its threads
  double start_seconds = 0;  // when it was started, since 1970
  uint64_t resident_bytes = 0, virtual_bytes = 0;
  uint64_t threads = 0;
  uint64_t open_files = 0, open_files_max = 0;
};

Result<ProcessUsage> usage_of_this_process();

// Reads the text of /proc/PID/stat. `boot_seconds`: when the machine was started, since 1970.
Result<ProcessUsage> parse_process_stat(std::string_view text, double boot_seconds,
                                        double ticks_per_second, uint64_t page_bytes);

}  // namespace trainyard::os
