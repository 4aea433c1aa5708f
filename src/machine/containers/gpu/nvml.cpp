#include "containers/gpu/nvml.hpp"

#include <dlfcn.h>

#include <string>

namespace trainyard::containers {

Result<Nvml> load_nvml(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const why = ::dlerror();
    return not_found("loading NVML: " + std::string(why ? why : library) +
                     "; install the library of the NVIDIA driver (Debian: libnvidia-ml1)");
  }
  Nvml nvml = {};
  std::string missing;
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(handle, name));
    if (!function) missing = name;
  };
  find(nvml.init, "nvmlInit_v2");
  find(nvml.shutdown, "nvmlShutdown");
  find(nvml.count, "nvmlDeviceGetCount_v2");
  find(nvml.get, "nvmlDeviceGetHandleByIndex_v2");
  find(nvml.number, "nvmlDeviceGetMinorNumber");
  find(nvml.utilization, "nvmlDeviceGetUtilizationRates");
  find(nvml.memory, "nvmlDeviceGetMemoryInfo");
  if (!missing.empty())
    return not_found("loading NVML: " + library + " lacks the function " + missing +
                     "; install a newer NVIDIA driver");
  return nvml;
}

}  // namespace trainyard::containers
