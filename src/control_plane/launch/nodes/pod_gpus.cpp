#include "launch/nodes/pod_gpus.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::launch {
namespace {

constexpr size_t kGpuTextBytes = 80;

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 4 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

Result<std::string> minor_of(std::string_view device, const std::vector<DriverGpu>& gpus) {
  const std::string shown = "the GPU '" + shorten(device, kGpuTextBytes) + "'";
  if (device.starts_with("MIG-"))
    return invalid(shown + " is a part of one: parts of GPUs are not supported");
  if (is_number(device)) {
    const auto index = size_t(TRY(parse_int(device)));
    if (gpus.empty()) return std::to_string(index);
    if (index >= gpus.size())
      return invalid(shown + " does not exist: the driver has " + std::to_string(gpus.size()));
    return gpus[index].minor;
  }
  const auto found = std::ranges::find(gpus, device, &DriverGpu::uuid);
  if (found == gpus.end()) return invalid(shown + " is not among those of the driver");
  return found->minor;
}

}  // namespace

Result<DriverGpu> read_driver_gpu(std::string_view text) {
  DriverGpu gpu;
  for (const auto line : split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto name = trim(line.substr(0, colon));
    const auto value = trim(line.substr(colon + 1));
    if (name == "GPU UUID") gpu.uuid = value;
    if (name == "Device Minor") gpu.minor = value;
  }
  if (gpu.uuid.empty() || !is_number(gpu.minor))
    return invalid("the driver's information has no GPU UUID or no Device Minor");
  return gpu;
}

Result<std::string> pod_gpus(std::string_view visible, const std::vector<DriverGpu>& gpus) {
  std::vector<std::string> minors;
  if (visible == "all") {
    for (const DriverGpu& gpu : gpus) minors.push_back(gpu.minor);
  } else if (visible.starts_with('/')) {
    return invalid("NVIDIA_VISIBLE_DEVICES of the pod is '" + shorten(visible, kGpuTextBytes) +
                   "': set deviceListStrategy of NVIDIA's device plugin to envvar");
  } else if (visible != "void" && visible != "none") {
    for (const auto device : split(visible, ','))
      if (!trim(device).empty()) minors.push_back(TRY(minor_of(trim(device), gpus)));
  }
  if (minors.empty())
    return invalid("NVIDIA_VISIBLE_DEVICES of the pod is '" + shorten(visible, kGpuTextBytes) +
                   "', so no GPU is visible: check the runtime class and NVIDIA's device plugin");
  return join(minors, ",");
}

}  // namespace trainyard::launch
