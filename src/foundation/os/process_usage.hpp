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
  double cpu_seconds = 0;    // sum of all threads
  double start_seconds = 0;  // time of its start, since 1970
  uint64_t resident_bytes = 0, virtual_bytes = 0;
  uint64_t threads = 0;
  uint64_t open_files = 0, open_files_max = 0;
};

Result<ProcessUsage> usage_of_this_process();

// Parses the text of /proc/PID/stat. `boot_seconds` is the time when the machine was started, since
// 1970.
Result<ProcessUsage> parse_process_stat(std::string_view text, double boot_seconds,
                                        double ticks_per_second, uint64_t page_bytes);

}  // namespace trainyard::os
