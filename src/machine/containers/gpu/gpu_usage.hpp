// Reads the usage of a host's GPUs through NVML, and reports it from a process of its own.
//
//   agent: GpuMonitor  <-- one GpuReport a second, by a socket --  trainyard-agent --report-gpus
//
// The driver's library is called in the second process only: it may hang in the kernel or crash,
// and the agent with its other metrics does not notice. What the library returns is not trusted.
//
// Threads: callable from anywhere. Errors: unavailable (a function of NVML failed; its code is in
// the message), not_found (NVML has none of the GPUs).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "containers/gpu/gpu_report.hpp"
#include "containers/gpu/nvml.hpp"
#include "os/packet_socket.hpp"

namespace trainyard::containers {

// NVML measures utilisation over the last second, or a part of it.
inline constexpr Duration kGpuReportInterval = 1s;

// Returns the usage of the GPUs with these numbers (N of /dev/nvidiaN), in NVML's order. A GPU that
// fails is left out, unless all do.
// Requires: nvml.init() was called.
Result<std::vector<GpuUsage>> read_gpus(const Nvml& nvml, const std::vector<int64_t>& numbers);

// Sends a report each interval until the other side closes the socket, or until the GPUs cannot be
// read: then the last report has the error.
void report_gpus(const Nvml& nvml, const std::vector<int64_t>& numbers,
                 const os::PacketSocket& socket, Duration interval);

// Implements the program, after it has loaded the library: `devices` are device files of GPUs.
void report_gpus(const std::string& library, const std::vector<std::string>& devices,
                 const os::PacketSocket& socket, Duration interval = kGpuReportInterval);

}  // namespace trainyard::containers
