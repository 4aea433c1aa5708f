// UsageMeter measures each second how much of its share a host uses, as metrics with SageMaker's
// names.
//
// CPUUtilization is 0 to 100 for each core (a host with four busy cores shows 400), GPUUtilization
// and GPUMemoryUtilization are 0 to 100 for each GPU that provides the value. MemoryUtilization and
// DiskUtilization are 0 to 100. InputBytesFetched and InputBytesFromCache count the bytes of
// channels since the last point. A metric without values, or without bytes, has no point.
//
// Threads: confined to one.
#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "containers/container.hpp"
#include "containers/gpu/gpu_usage.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

inline constexpr Duration kMeasureInterval = 1s;
// Points are sent together, since each message must be durable before the server acknowledges it.
inline constexpr Duration kReportInterval = 5s;

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
    return *last_at_ + std::chrono::nanoseconds(kMeasureInterval);
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
  // Adds points to the next report. Returns the report when it is due: first at once, so that a
  // short job has a point soon, and then each kReportInterval; else nothing.
  std::vector<wire::MetricPoint> collect(std::vector<wire::MetricPoint> points,
                                         std::chrono::nanoseconds monotonic);
  // Returns the points that no report has had.
  std::vector<wire::MetricPoint> take_rest() { return std::exchange(unreported_, {}); }

 private:
  std::optional<std::chrono::nanoseconds> last_at_, last_cpu_;
  InputBytes last_input_;
  bool measured_ = false;
  std::vector<wire::MetricPoint> unreported_;
  std::optional<std::chrono::nanoseconds> reported_at_;
};

}  // namespace trainyard::agent
