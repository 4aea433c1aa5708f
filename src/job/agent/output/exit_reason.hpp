// Describes for FailureReason why a host's process failed: what the platform knows of its end, then
// the failure file or the last lines of its output.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "containers/container.hpp"

namespace trainyard::agent {

struct ProcessEnd {
  int code = 1;  // not 0; 128+n when ended by signal n
  // the memory limit killed one of its processes
  bool out_of_memory = false;
  // that memory limit: "1.0 GiB memory limit (1/8 of ml.m5.large)"
  std::string limit = {};
  // as last seen before its end; none: unknown
  std::vector<containers::ProcessMemory> largest = {};
  std::string failure = {};      // the text of the failure file
  std::string last_output = {};  // the last lines of its output
};

// Returns at most contract::kShownBytesMax, unless the failure file, which is shown as it is, has
// more.
std::string exit_reason(const ProcessEnd& end);

}  // namespace trainyard::agent
