// How much of its share a host uses, as the metrics that SageMaker publishes each minute.
//
// CPUUtilization is 0 to 100 for each core (a host that keeps four busy shows 400), MemoryUtilization and
// DiskUtilization are 0 to 100.
//
// Threads: confined to one.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "host/container.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

inline constexpr Duration kMeasureInterval = 1min;

struct DiskUsage {
  uint64_t used_bytes = 0;
  uint64_t all_bytes = 0;
};
// Of the file system that holds `path`. Nothing when it cannot be asked.
std::optional<DiskUsage> disk_usage(const std::string& path);

class UsageMeter {
 public:
  // Points of what was used since the last call; none of the processor at the first.
  std::vector<wire::MetricPoint> measure(const host::ContainerUsage& usage, int64_t memory_limit_bytes,
                                         const std::optional<DiskUsage>& disk, Instant at,
                                         std::chrono::nanoseconds monotonic);

 private:
  std::optional<std::chrono::nanoseconds> last_at_, last_cpu_;
};

}  // namespace trainyard::agent
