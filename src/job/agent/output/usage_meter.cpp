#include "agent/output/usage_meter.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <iterator>

namespace trainyard::agent {

std::optional<DiskUsage> disk_usage(const std::string& path) {
  struct statvfs volume {};
  if (::statvfs(path.c_str(), &volume) != 0 || volume.f_blocks == 0) return {};
  return DiskUsage{(volume.f_blocks - volume.f_bfree) * volume.f_frsize,
                   volume.f_blocks * volume.f_frsize};
}

std::vector<wire::MetricPoint> UsageMeter::measure(const containers::ContainerUsage& usage,
                                                   int64_t memory_limit_bytes,
                                                   const std::optional<DiskUsage>& disk,
                                                   const std::vector<containers::GpuUsage>& gpus,
                                                   const InputBytes& input, Instant at,
                                                   std::chrono::nanoseconds monotonic) {
  std::vector<wire::MetricPoint> points;
  const auto add = [&](const char* name, double value) {
    points.push_back({name, at, value, true});
  };
  if (!last_at_ || monotonic <= *last_at_) {
    last_at_ = monotonic;
    last_cpu_ = usage.cpu;
    return points;
  }
  measured_ = true;
  add("CPUUtilization",
      100.0 *
          static_cast<double>(
              std::max(usage.cpu - *last_cpu_, std::chrono::nanoseconds(0)).count()) /
          static_cast<double>((monotonic - *last_at_).count()));
  last_at_ = monotonic;
  last_cpu_ = usage.cpu;
  if (memory_limit_bytes > 0) {
    add("MemoryUtilization", std::min(100.0, 100.0 * static_cast<double>(usage.memory_bytes) /
                                                 static_cast<double>(memory_limit_bytes)));
  }
  if (disk && disk->all_bytes > 0) {
    add("DiskUtilization",
        100.0 * static_cast<double>(disk->used_bytes) / static_cast<double>(disk->all_bytes));
  }
  std::optional<double> busy, memory;
  for (const auto& gpu : gpus) {
    if (gpu.busy) busy = busy.value_or(0) + *gpu.busy;
    if (gpu.memory_percent) memory = memory.value_or(0) + *gpu.memory_percent;
  }
  if (busy) add("GPUUtilization", *busy);
  if (memory) add("GPUMemoryUtilization", *memory);
  const auto add_more = [&](const char* name, uint64_t now, uint64_t before) {
    if (now > before) add(name, static_cast<double>(now - before));
  };
  add_more("InputBytesFetched", input.fetched, last_input_.fetched);
  add_more("InputBytesFromCache", input.from_cache, last_input_.from_cache);
  last_input_ = input;
  return points;
}

std::vector<wire::MetricPoint> UsageMeter::collect(std::vector<wire::MetricPoint> points,
                                                   std::chrono::nanoseconds monotonic) {
  std::ranges::move(points, std::back_inserter(unreported_));
  if (unreported_.empty() || (reported_at_ && monotonic - *reported_at_ < kReportInterval))
    return {};
  reported_at_ = monotonic;
  return take_rest();
}

}  // namespace trainyard::agent
