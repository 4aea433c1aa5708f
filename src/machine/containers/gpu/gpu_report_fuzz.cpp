// Decodes reports of GPU usage, which a process that has loaded the driver's library sends.
// decoder: src/machine/containers/gpu/gpu_report.cpp
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "containers/gpu/gpu_report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::containers;
  const auto report = parse_gpu_report({reinterpret_cast<const char*>(data), size});
  if (!report) return 0;
  if (report->gpus.size() > kGpusMax) __builtin_trap();
  for (const auto& gpu : report->gpus)
    for (const auto& percent : {gpu.busy, gpu.memory_percent})
      if (percent && !(*percent >= 0 && *percent <= 100)) __builtin_trap();
  const auto again = parse_gpu_report(format_gpu_report(*report));
  if (!again || again->gpus != report->gpus || again->error != report->error) __builtin_trap();
  return 0;
}
