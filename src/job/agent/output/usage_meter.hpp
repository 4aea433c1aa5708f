// Measures how much of its share a host uses, as the metrics that SageMaker publishes each minute.
//
// CPUUtilization is 0 to 100 for each core (a host with four busy ones shows 400), GPUUtilization
// and GPUMemoryUtilization are 0 to 100 for each GPU that provides the value, without any there is
// no point. MemoryUtilization and DiskUtilization are 0 to 100. InputBytesFetched and
// InputBytesFromCache are the bytes of channels since the last point; without any there is no
// point.
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
// The first time at which the processor's use can be computed: so short jobs have a point as well.
inline constexpr Duration kFirstMeasureAfter = 2s;

struct DiskUsage {
  uint64_t used_bytes = 0;
  uint64_t all_bytes = 0;
};
// Returns the usage of the file system of `path`. Nothing when it cannot be read.
std::optional<DiskUsage> disk_usage(const std::string& path);

// Bytes of channels since the start of the host's run.
struct InputBytes {
  uint64_t fetched = 0, from_cache = 0;
};

class UsageMeter {
 public:
  // The time of the next call, relative to the start of the process, at which it is measured first.
  std::chrono::nanoseconds due() const {
    if (!last_at_) return {};
    return *last_at_ + std::chrono::nanoseconds(measured_ ? kMeasureInterval : kFirstMeasureAfter);
  }
  // True if the processor's use was measured at all.
  bool measured() const { return measured_; }
  // Returns the points since the last call. The first call returns none: it starts the counting.
  std::vector<wire::MetricPoint> measure(const containers::ContainerUsage& usage,
                                         int64_t memory_limit_bytes,
                                         const std::optional<DiskUsage>& disk,
                                         const std::vector<containers::GpuUsage>& gpus,
                                         const InputBytes& input, Instant at,
                                         std::chrono::nanoseconds monotonic);

 private:
  std::optional<std::chrono::nanoseconds> last_at_, last_cpu_;
  InputBytes last_input_;
  bool measured_ = false;
};

}  // namespace trainyard::agent
