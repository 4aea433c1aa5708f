// Measures how much of its share a host uses, as the metrics that SageMaker publishes each minute.
//
// CPUUtilization is 0 to 100 for each core (a host with four busy cores shows 400), GPUUtilization
// and GPUMemoryUtilization are 0 to 100 for each GPU that provides the value; if none does, there
// is no point. MemoryUtilization and DiskUtilization are 0 to 100. InputBytesFetched and
// InputBytesFromCache count the bytes of channels since the last point; without any bytes there is
// no point.
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
// The time from the first call to the first point: short, so that short jobs have a point as well.
inline constexpr Duration kFirstMeasureAfter = 2s;

struct DiskUsage {
  uint64_t used_bytes = 0;
  uint64_t all_bytes = 0;
};
// Returns the usage of the file system of `path`; nullopt: it cannot be read.
std::optional<DiskUsage> disk_usage(const std::string& path);

// The bytes of channels that were read since the start of the host's run.
struct InputBytes {
  uint64_t fetched = 0, from_cache = 0;
};

class UsageMeter {
 public:
  // Returns the monotonic time at which measure() must be called next.
  std::chrono::nanoseconds next_measurement() const {
    if (!last_at_) return {};
    return *last_at_ + std::chrono::nanoseconds(measured_ ? kMeasureInterval : kFirstMeasureAfter);
  }
  // True if measure() has returned points.
  bool measured() const { return measured_; }
  // Returns the points for the time since the last call. The first call returns none: it starts the
  // measurement.
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
