#include "config/jobs.hpp"

#include <algorithm>

namespace trainyard::config {
namespace {

constexpr int64_t kImagesGibMax = 1 << 20;               // a pebibyte: a larger number is a mistake
constexpr std::string_view kNvidiaCard = "/dev/nvidia";  // followed by its number
constexpr double kInterruptionsPerHourMax = 3600;        // one per second

Result<void> read_isolation(Table& root, bool& best_effort) {
  std::string isolation = "strict";
  TRY(root.read("isolation", isolation));
  if (isolation != "strict" && isolation != "best-effort")
    return invalid("isolation must be \"strict\" or \"best-effort\", not \"" + isolation + "\"");
  best_effort = isolation == "best-effort";
  return {};
}

// [ulimits]: the highest hard limit that a Batch container may set; -1: no limit.
Result<void> read_limits(Table table, std::map<std::string, uint64_t>& limits_max) {
  for (auto& [name, most] : limits_max) {
    int64_t value = int64_t(most);
    TRY(table.read(name.c_str(), value));
    if (value < -1) return invalid(table.name(name) + " must be 0 or more, or -1 for no limit");
    most = uint64_t(value);
  }
  return table.nothing_else();
}

Result<void> read_defaults(Table table, Config& config) {
  TRY(table.read("devices", config.devices));
  for (const auto& device : config.devices)
    if (!device.starts_with("/dev/"))
      return invalid(table.name("devices") + ": \"" + device +
                     "\" must be a device file below /dev");
  std::string gpu_memory = "clear";
  TRY(table.read("gpu_memory", gpu_memory));
  if (gpu_memory != "clear" && gpu_memory != "keep")
    return invalid(table.name("gpu_memory") +
                   " must be \"clear\" (overwritten before another job gets the GPU) or "
                   "\"keep\", not \"" +
                   gpu_memory + "\"");
  config.clear_gpus = gpu_memory == "clear";
  std::string file_mode = "mount";
  TRY(table.read("file_mode", file_mode));
  if (file_mode != "mount" && file_mode != "copy")
    return invalid(table.name("file_mode") +
                   " must be \"mount\" (channels are fetched as they are read) or \"copy\" (before "
                   "the script starts), not \"" +
                   file_mode + "\"");
  config.copy_channels = file_mode == "copy";
  int64_t stop_grace_seconds = config.stop_grace / 1s;
  TRY(table.read("stop_grace_seconds", stop_grace_seconds));
  if (stop_grace_seconds < 0 || stop_grace_seconds > 3600)
    return invalid(table.name("stop_grace_seconds") + " must be between 0 and 3600");
  config.stop_grace = std::chrono::seconds(stop_grace_seconds);
  int64_t stalled_after_seconds = config.stalled_after / 1s;
  TRY(table.read("stalled_after_seconds", stalled_after_seconds));
  if (stalled_after_seconds < 0 || stalled_after_seconds > 86400 * 28)
    return invalid(table.name("stalled_after_seconds") +
                   " must be between 0 (never) and 2419200 (28 days), not " +
                   std::to_string(stalled_after_seconds));
  config.stalled_after = std::chrono::seconds(stalled_after_seconds);
  int64_t images_gib_max = int64_t(config.images_bytes_max >> 30);
  TRY(table.read("images_gib_max", images_gib_max));
  if (images_gib_max < 0 || images_gib_max > kImagesGibMax)
    return invalid(table.name("images_gib_max") + " must be between 0 and " +
                   std::to_string(kImagesGibMax));
  config.images_bytes_max = uint64_t(images_gib_max) << 30;
  return table.nothing_else();
}

Result<void> read_spot(Table table, Config& config) {
  int64_t notice_seconds = config.spot_notice / 1s;
  TRY(table.read("notice_seconds", notice_seconds));
  TRY(table.read("interruptions_per_host_hour", config.spot_interruptions_per_host_hour));
  TRY(table.read("seed", config.spot_seed));
  TRY(table.read("trace", config.spot_trace_file));
  if (notice_seconds < 0 || notice_seconds > 3600)
    return invalid(table.name("notice_seconds") + " must be between 0 and 3600");
  if (!(config.spot_interruptions_per_host_hour >= 0 &&
        config.spot_interruptions_per_host_hour <= kInterruptionsPerHourMax))
    return invalid(table.name("interruptions_per_host_hour") + " must be between 0 and " +
                   std::to_string(int64_t(kInterruptionsPerHourMax)));
  config.spot_notice = std::chrono::seconds(notice_seconds);
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
          "jobs.devices: \"" + device +
          "\" is a GPU, which belongs to one job at a time: jobs get it by their instance type "
          "or the resource requirement GPU");
  }
  return {};
}

}  // namespace trainyard::config
