// Loads NVIDIA's management library (NVML), which comes with the driver of GPUs.
//
// Nothing is built with it: a machine without GPUs has no such library. The functions and records
// are declared here as NVIDIA's "NVML API Reference" documents them.
//
// Threads: the library's functions are callable from anywhere. A call may block in the kernel for
// as long as the driver hangs, and a driver may crash its caller, so only a process made for this
// purpose calls them (gpu_usage.hpp).
// Errors: not_found (the machine lacks the library, or it lacks a function).
// Lifetime: a loaded library stays.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::containers {

inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";
// Codes of NVML's functions (nvmlReturn_t). The second: the GPU does not provide the value, as
// utilisation of a GPU in MIG mode.
inline constexpr int kNvmlSuccess = 0;
inline constexpr int kNvmlNotSupported = 3;

using NvmlDevice = void*;  // nvmlDevice_t, a handle of the library

struct NvmlUtilization {  // nvmlUtilization_t
  unsigned gpu, memory;   // percent of the last second: kernels ran, memory was read or written
};

struct NvmlMemory {                      // nvmlMemory_t
  unsigned long long total, free, used;  // bytes
};

// The functions of NVML that are used: a table, so that tests provide their own.
struct Nvml {
  int (*init)();                                     // nvmlInit_v2
  int (*shutdown)();                                 // nvmlShutdown
  int (*count)(unsigned* devices);                   // nvmlDeviceGetCount_v2
  int (*get)(unsigned index, NvmlDevice*);           // nvmlDeviceGetHandleByIndex_v2
  int (*number)(NvmlDevice, unsigned* n);            // nvmlDeviceGetMinorNumber: N of /dev/nvidiaN
  int (*utilization)(NvmlDevice, NvmlUtilization*);  // nvmlDeviceGetUtilizationRates
  int (*memory)(NvmlDevice, NvmlMemory*);            // nvmlDeviceGetMemoryInfo
};

// Loads the library; `library` is passed to dlopen. Does not call it.
Result<Nvml> load_nvml(const std::string& library = kNvmlLibrary);

}  // namespace trainyard::containers
