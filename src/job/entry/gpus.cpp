#include "entry/gpus.hpp"

#include <algorithm>
#include <tuple>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::entry {
namespace {

constexpr int kGpusMax = 64;      // device files are searched by number
constexpr int kCpusMax = 16'384;  // above the limit of Linux
constexpr size_t kFileBytesMax = 64 << 10;

// Returns the value of a line "Name:   value".
std::string driver_field(std::string_view text, std::string_view name) {
  for (const auto line : split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && trim(line.substr(0, colon)) == name)
      return std::string(trim(line.substr(colon + 1)));
  }
  return "";
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  for (const auto part : split(trim(text), ',')) {
    const size_t dash = part.find('-');
    const auto first = parse_int(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_int(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kCpusMax) return {};
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::vector<Gpu> find_gpus(const std::string& root) {
  std::vector<Gpu> gpus;
  for (int device = 0; device < kGpusMax; ++device)
    if (os::exists(root + "/dev/nvidia" + std::to_string(device))) gpus.push_back({device, "", {}});
  const std::string driver = root + "/proc/driver/nvidia/gpus";
  const auto buses = os::list_directory(driver);
  if (!buses) return gpus;
  for (const auto& bus : *buses) {
    const auto driver_text = os::read_file(driver + "/" + bus + "/information", kFileBytesMax);
    const auto device = driver_text ? parse_int(driver_field(*driver_text, "Device Minor"))
                                    : Result<int64_t>(driver_text.error());
    const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const Gpu& one) { return device && one.device == *device; });
    if (gpu == gpus.end()) continue;
    gpu->bus = to_lower(bus);
    if (const auto near = os::read_file(
            root + "/sys/bus/pci/devices/" + gpu->bus + "/local_cpulist", kFileBytesMax))
      gpu->cpus = parse_cpu_list(*near);
  }
  // GPUs without a known bus keep the order of their numbers, behind the others.
  std::stable_sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) {
    return std::make_tuple(a.bus.empty(), a.bus) < std::make_tuple(b.bus.empty(), b.bus);
  });
  return gpus;
}

}  // namespace trainyard::entry
