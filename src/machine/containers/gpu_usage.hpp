// Reads the utilisation of GPUs from NVIDIA's own tool.
//
// Threads: callable from anywhere; a call takes some tenths of a second. Errors: not_found (no such
// tool), and those of running it; corrupt, when its output cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

struct GpuUsage {
  int64_t index = 0;          // N of /dev/nvidiaN
  double busy = 0;            // 0 to 100
  double memory_percent = 0;  // 0 to 100
};

// Parses the lines "INDEX, BUSY, MEMORY USED, MEMORY TOTAL" of the tool's CSV. A value that the GPU
// does not provide ("[N/A]") counts as 0. Pure.
Result<std::vector<GpuUsage>> parse_gpu_usage(std::string_view text);

// Returns the usage of the GPUs among these device files, in their order; empty when there are
// none.
Result<std::vector<GpuUsage>> gpu_usage(const std::vector<std::string>& devices);

}  // namespace trainyard::containers
