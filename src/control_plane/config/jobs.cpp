#include "config/jobs.hpp"

#include <algorithm>

namespace trainyard::config {
namespace {

constexpr int64_t kImagesGibMax = 1 << 20;               // a pebibyte: a larger number is a mistake
constexpr std::string_view kNvidiaCard = "/dev/nvidia";  // followed by its number
constexpr double kInterruptionsPerHourMax = 3600;        // one per second
constexpr int64_t kGraceSecondsMax = 3600;               // the capacity is not free before its end
constexpr int64_t kStalledSecondsMax = 28 * 86'400;      // the longest run time of a training job

Result<void> read_isolation(Table& root, bool& best_effort) {
  std::string isolation = "strict";
  TRY(root.read("isolation", isolation));
  if (isolation != "strict" && isolation != "best-effort")
    return root.refused("isolation", "\"strict\" or \"best-effort\"");
  best_effort = isolation == "best-effort";
  return {};
}

// [ulimits]: the highest hard limit that a Batch container may set; -1: no limit.
Result<void> read_limits(Table table, std::map<std::string, uint64_t>& limits_max) {
  for (auto& [name, most] : limits_max) {
    int64_t value = int64_t(most);
    TRY(table.read(name.c_str(), value));
    if (value < -1) return table.refused(name, "0 or more, or -1 for no limit");
    most = uint64_t(value);
  }
  return table.nothing_else();
}

Result<void> read_defaults(Table table, Config& config) {
  TRY(table.read("devices", config.devices));
  for (const auto& device : config.devices)
    if (!device.starts_with("/dev/"))
      return table.refused_element("devices", device, "a device file below /dev");
  std::string gpu_memory = "clear";
  TRY(table.read("gpu_memory", gpu_memory));
  if (gpu_memory != "clear" && gpu_memory != "keep")
    return table.refused("gpu_memory",
                         "\"clear\" (overwritten before another job gets the GPU) or \"keep\"");
  config.clear_gpus = gpu_memory == "clear";
  std::string file_mode = "mount";
  TRY(table.read("file_mode", file_mode));
  if (file_mode != "mount" && file_mode != "copy")
    return table.refused("file_mode",
                         "\"mount\" (channels are fetched as they are read) or \"copy\" (before "
                         "the script starts)");
  config.copy_channels = file_mode == "copy";
  TRY(table.read_duration("stop_grace_seconds", config.stop_grace, 1s, {0, kGraceSecondsMax}));
  TRY(table.read_duration("stalled_after_seconds", config.stalled_after, 1s,
                          {0, kStalledSecondsMax, "never", " (28 days)"}));
  int64_t images_gib_max = int64_t(config.images_bytes_max >> 30);
  TRY(table.read("images_gib_max", images_gib_max, {0, kImagesGibMax}));
  config.images_bytes_max = uint64_t(images_gib_max) << 30;
  return table.nothing_else();
}

Result<void> read_spot(Table table, Config& config) {
  TRY(table.read_duration("notice_seconds", config.spot_notice, 1s, {0, kGraceSecondsMax}));
  TRY(table.read("interruptions_per_host_hour", config.spot_interruptions_per_host_hour,
                 {0, kInterruptionsPerHourMax}));
  TRY(table.read("seed", config.spot_seed));
  TRY(table.read("trace", config.spot_trace_file));
  return table.nothing_else();
}

}  // namespace

Result<void> read_jobs(Table& root, Config& config) {
  TRY(read_isolation(root, config.best_effort_isolation));
  TRY(root.each("ulimits", [&](Table table) { return read_limits(table, config.limits_max); }));
  TRY(root.each("jobs", [&](Table table) { return read_defaults(table, config); }));
  return root.each("spot", [&](Table table) { return read_spot(table, config); });
}

Result<void> check_devices(const Config& config) {
  for (const auto& device : config.devices) {
    const bool of_machine =
        std::any_of(config.machines.begin(), config.machines.end(), [&](const auto& each) {
          return std::count(each.gpu_devices.begin(), each.gpu_devices.end(), device) > 0;
        });
    const std::string_view card =
        std::string_view(device).substr(std::min(device.size(), kNvidiaCard.size()));
    const bool is_card = device.starts_with(kNvidiaCard) && !card.empty() &&
                         card.find_first_not_of("0123456789") == std::string_view::npos;
    if (of_machine || is_card)
      return invalid(
          "jobs.devices: " + format_text(device) +
          " is a GPU, which belongs to one job at a time: jobs get it by their instance type "
          "or the resource requirement GPU");
  }
  return {};
}

}  // namespace trainyard::config
