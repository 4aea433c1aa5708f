#include "containers/gpu_usage.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "os/process.hpp"

namespace trainyard::containers {
namespace {

constexpr Duration kDriverToolMax = 10s;  // a driver that hangs must not block the caller forever
constexpr std::string_view kCard = "/dev/nvidia";

// The numbers of the GPUs: /dev/nvidiactl and the like have none.
std::vector<int64_t> cards_of(const std::vector<std::string>& devices) {
  std::vector<int64_t> cards;
  for (const auto& device : devices) {
    if (!device.starts_with(kCard)) continue;
    if (const auto number = parse_int(std::string_view(device).substr(kCard.size())))
      cards.push_back(*number);
  }
  return cards;
}

}  // namespace

Result<std::vector<GpuUsage>> parse_gpu_usage(std::string_view text) {
  std::vector<GpuUsage> all;
  for (const auto line : split(text, '\n')) {
    if (trim(line).empty()) continue;
    const auto members = split(line, ',');
    const auto index =
        members.size() == 4 ? parse_int(trim(members[0])) : Result<int64_t>(invalid(""));
    if (!index) return corrupt("invalid line of nvidia-smi: '" + shorten(to_utf8(line), 100) + "'");
    const auto number = [&](size_t i) {
      const auto value = parse_double(trim(members[i]));
      return value ? std::max(0.0, *value) : 0.0;
    };
    GpuUsage usage;
    usage.index = *index;
    usage.busy = std::min(100.0, number(1));
    usage.memory_percent = number(3) > 0 ? std::min(100.0, 100 * number(2) / number(3)) : 0;
    all.push_back(usage);
  }
  return all;
}

Result<std::vector<GpuUsage>> gpu_usage(const std::vector<std::string>& devices) {
  const auto cards = cards_of(devices);
  if (cards.empty()) return std::vector<GpuUsage>();
  if (!os::on_path("nvidia-smi")) return not_found("reading GPU usage: nvidia-smi is not on PATH");
  os::Command command;
  command.arguments = {"nvidia-smi", "--query-gpu=index,utilization.gpu,memory.used,memory.total",
                       "--format=csv,noheader,nounits"};
  command.at_most = kDriverToolMax;
  auto all = TRY(parse_gpu_usage(TRY(os::run_or_fail(command))));
  std::erase_if(all, [&](const GpuUsage& one) {
    return std::find(cards.begin(), cards.end(), one.index) == cards.end();
  });
  return all;
}

}  // namespace trainyard::containers
