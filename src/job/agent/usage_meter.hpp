// How much of its share a host uses, as the metrics that SageMaker publishes each minute.
//
// CPUUtilization is 0 to 100 for each core (a host that keeps four busy shows 400), GPUUtilization and
// GPUMemoryUtilization are 0 to 100 for each GPU, MemoryUtilization and DiskUtilization are 0 to 100.
//
// Threads: confined to one.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "containers/container.hpp"
#include "containers/gpu_usage.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

inline constexpr Duration kMeasureInterval = 1min;
// The first time that something can be said of the processor: short jobs have a point as well.
inline constexpr Duration kFirstMeasureAfter = 2s;

struct DiskUsage {
  uint64_t used_bytes = 0;
  uint64_t all_bytes = 0;
};
// Of the file system that holds `path`. Nothing when it cannot be asked.
std::optional<DiskUsage> disk_usage(const std::string& path);

class UsageMeter {
 public:
  // When the next call is due, of a process that was started then and is measured at its start.
  std::chrono::nanoseconds due() const {
    if (!last_at_) return {};
    return *last_at_ + std::chrono::nanoseconds(measured_ ? kMeasureInterval : kFirstMeasureAfter);
  }
  // Whether the processor's use was told at all.
  bool measured() const { return measured_; }
  // Points of what was used since the last call. At the first there are none: it is where counting begins.
  std::vector<wire::MetricPoint> measure(const containers::ContainerUsage& usage, int64_t memory_limit_bytes,
                                         const std::optional<DiskUsage>& disk,
                                         const std::vector<containers::GpuUsage>& gpus, Instant at,
                                         std::chrono::nanoseconds monotonic);

 private:
  std::optional<std::chrono::nanoseconds> last_at_, last_cpu_;
  bool measured_ = false;
};

}  // namespace trainyard::agent
