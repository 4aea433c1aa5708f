// Finds the device files of the GPUs that NVIDIA's device plugin for Kubernetes gave to a pod.
//
// The plugin names them in the environment variable NVIDIA_VISIBLE_DEVICES, by UUID or by index in
// the order of the PCI bus (its deviceIDStrategy). For each GPU the driver shows the UUID, and the
// minor number of the device file.
//
// Threads: pure. Errors: invalid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::launch {

struct DriverGpu {
  std::string uuid;
  std::string minor;  // "0": /dev/nvidia0
};

// Reads the file "information" that the driver has for a GPU, in /proc/driver/nvidia/gpus.
Result<DriverGpu> read_driver_gpu(std::string_view text);

// Returns the minor numbers, "0,2". `visible`: the variable. `gpus`: those of the driver, in the
// order of the PCI bus; empty: the driver shows none, and an index is a minor number.
Result<std::string> pod_gpus(std::string_view visible, const std::vector<DriverGpu>& gpus);

}  // namespace trainyard::launch
