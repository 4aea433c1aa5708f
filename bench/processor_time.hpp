// Measures the processor time of this process, which other programs on the machine hardly affect.
//
// Threads: any. Units: seconds.
#pragma once

#include <time.h>

namespace trainyard::bench {

inline double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

}  // namespace trainyard::bench
