// Describes for FailureReason why a host's process failed: first the exit code, signal or memory
// limit, then the failure file or the last lines of the output.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "containers/container.hpp"

namespace trainyard::agent {

struct ProcessEnd {
  int code = 1;  // not 0; 128+n when ended by signal n
  // True if the kernel killed a process of the host at the memory limit.
  bool out_of_memory = false;
  // The memory limit: "1.0 GiB memory limit (1/8 of ml.m5.large)".
  std::string limit = {};
  // The largest processes at the last check before the end; empty: unknown.
  std::vector<containers::ProcessMemory> largest = {};
  std::string failure = {};      // the text of the failure file
  std::string last_output = {};  // the last lines of its output
};

// Returns at most contract::kShownBytesMax bytes. A longer failure file is returned as it is.
std::string exit_reason(const ProcessEnd& end);

}  // namespace trainyard::agent
