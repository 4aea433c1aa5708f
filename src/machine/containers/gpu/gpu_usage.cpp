#include "containers/gpu/gpu_usage.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/text.hpp"
#include "containers/gpu/gpu_memory.hpp"

namespace trainyard::containers {
namespace {

constexpr std::string_view kGpuFile = "/dev/nvidia";

Error nvml_error(const char* doing, int code) {
  return unavailable(std::string(doing) + " failed with NVML's error " + std::to_string(code) +
                     "; run nvidia-smi to see the state of the driver");
}

#define TRY_NVML(doing, call) \
  if (const int returned = (call); returned != kNvmlSuccess) return nvml_error(doing, returned)

Result<std::optional<double>> busy_of(const Nvml& nvml, NvmlDevice device) {
  NvmlUtilization utilization = {};
  const int code = nvml.utilization(device, &utilization);
  if (code == kNvmlNotSupported) return std::optional<double>();
  TRY_NVML("reading the utilisation of a GPU", code);
  return std::optional<double>(std::min(utilization.gpu, 100u));
}

Result<std::optional<double>> memory_percent_of(const Nvml& nvml, NvmlDevice device) {
  NvmlMemory memory = {};
  const int code = nvml.memory(device, &memory);
  if (code == kNvmlNotSupported) return std::optional<double>();
  TRY_NVML("reading the memory of a GPU", code);
  if (memory.total == 0) return std::optional<double>();
  return std::optional(100.0 * double(std::min(memory.used, memory.total)) / double(memory.total));
}

// Returns nothing if it is not one of `wanted`; else its number is removed from them, so that each
// counts once.
Result<std::optional<GpuUsage>> read_gpu(const Nvml& nvml, unsigned index,
                                         std::set<int64_t>& wanted) {
  NvmlDevice device = nullptr;
  TRY_NVML("opening a GPU", nvml.get(index, &device));
  unsigned number = 0;
  TRY_NVML("reading the number of a GPU", nvml.number(device, &number));
  if (wanted.erase(int64_t(number)) == 0) return std::optional<GpuUsage>();
  GpuUsage usage;
  usage.busy = TRY(busy_of(nvml, device));
  usage.memory_percent = TRY(memory_percent_of(nvml, device));
  return std::optional(usage);
}

Result<void> send_reports(const Nvml& nvml, const std::vector<int64_t>& numbers,
                          const os::PacketSocket& socket, Duration interval) {
  for (;;) {
    GpuReport report;
    report.gpus = TRY(read_gpus(nvml, numbers));
    TRY(socket.send(format_gpu_report(report)));
    // The other side sends nothing: this ends early when it closes.
    TRY(socket.receive(interval));
  }
}

void send_error(const os::PacketSocket& socket, const Error& error) {
  // The monitor may have closed its end.
  (void)socket.send(format_gpu_report({{}, to_utf8(error.message)}));
}

}  // namespace

Result<std::vector<GpuUsage>> read_gpus(const Nvml& nvml, const std::vector<int64_t>& numbers) {
  std::set<int64_t> wanted(numbers.begin(), numbers.end());
  unsigned count = 0;
  TRY_NVML("counting GPUs", nvml.count(&count));
  std::vector<GpuUsage> gpus;
  std::optional<Error> first;
  for (unsigned index = 0; index < std::min(count, kGpusMax) && !wanted.empty(); index++) {
    auto usage = read_gpu(nvml, index, wanted);
    if (usage && *usage) gpus.push_back(**usage);
    if (!usage && !first) first = std::move(usage).error();
  }
  if (!gpus.empty()) return gpus;
  if (first) return *std::move(first);
  return not_found("reading GPU usage: NVML has " + std::to_string(count) +
                   " GPUs, but none of the device files of this host");
}

void report_gpus(const Nvml& nvml, const std::vector<int64_t>& numbers,
                 const os::PacketSocket& socket, Duration interval) {
  if (const int code = nvml.init(); code != kNvmlSuccess)
    return send_error(socket, nvml_error("starting NVML", code));
  if (const auto ended = send_reports(nvml, numbers, socket, interval); !ended)
    send_error(socket, ended.error());
  (void)nvml.shutdown();
}

void report_gpus(const std::string& library, const std::vector<std::string>& devices,
                 const os::PacketSocket& socket, Duration interval) {
  std::vector<int64_t> numbers;
  for (const auto& device : devices)
    if (is_gpu(device)) numbers.push_back(*parse_int(device.substr(kGpuFile.size())));
  const auto nvml = load_nvml(library);
  if (!nvml) return send_error(socket, nvml.error());
  report_gpus(*nvml, numbers, socket, interval);
}

}  // namespace trainyard::containers
