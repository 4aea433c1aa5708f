#include "containers/gpu/gpu_report.hpp"

#include <utility>

#include "base/json_record.hpp"

namespace trainyard::containers {
namespace {

constexpr auto kUsageRecord = json_record<GpuUsage>(
    "GPU usage",
    [](auto& side, auto& usage) {
      side("busy", usage.busy);
      side("memory_percent", usage.memory_percent);
    },
    [](const GpuUsage& usage) -> Result<void> {
      for (const auto& percent : {usage.busy, usage.memory_percent})
        if (percent && !(*percent >= 0 && *percent <= 100))
          return invalid("reading GPU usage: " + std::to_string(*percent) +
                         " is not between 0 and 100");
      return ok();
    });

constexpr auto kReportRecord = json_record<GpuReport>(
    "GPU report",
    [](auto& side, auto& report) {
      side("gpus", report.gpus, kUsageRecord);
      side.if_set("error", report.error);
    },
    [](const GpuReport& report) -> Result<void> {
      if (report.gpus.size() > kGpusMax)
        return invalid("reading GPU usage: " + std::to_string(report.gpus.size()) +
                       " GPUs are more than " + std::to_string(kGpusMax));
      return ok();
    });

}  // namespace

std::string format_gpu_report(const GpuReport& report) { return dump(kReportRecord.write(report)); }

Result<GpuReport> parse_gpu_report(std::string_view text) {
  const auto json = parse_json(text);
  if (!json) return corrupt("reading a GPU report: " + json.error().message);
  auto report = kReportRecord.read(*json);
  if (!report) return corrupt(report.error().message);
  return *std::move(report);
}

}  // namespace trainyard::containers
