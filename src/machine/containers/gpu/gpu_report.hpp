// Defines the report of the usage of a host's GPUs that trainyard-agent --report-gpus sends to the
// agent.
//
// Threads: callable from anywhere. Errors: corrupt (an invalid report).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::containers {

// At most this many GPUs of a machine are read: NVIDIA's driver has fewer device files.
inline constexpr unsigned kGpusMax = 256;

// The usage of one GPU. An unset member is unknown: a GPU in MIG mode has no utilisation.
struct GpuUsage {
  std::optional<double> busy;            // 0 to 100
  std::optional<double> memory_percent;  // 0 to 100
  bool operator==(const GpuUsage&) const = default;
};

// The usage of GPUs, or the reason for which there is none.
struct GpuReport {
  std::vector<GpuUsage> gpus;
  std::string error;
};
std::string format_gpu_report(const GpuReport& report);
// Errors: corrupt, also for numbers outside of their ranges.
Result<GpuReport> parse_gpu_report(std::string_view text);

}  // namespace trainyard::containers
