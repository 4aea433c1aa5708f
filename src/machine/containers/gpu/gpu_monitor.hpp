// Keeps the last usage of a host's GPUs, which another process reports (gpu_usage.hpp).
//
//   trainyard-agent --report-gpus /dev/nvidia0 ..      standard input: a socket to the monitor
//
// A driver that hangs or crashes takes that process with it, and no caller of latest() waits. The
// process is killed when it reports nothing in time, and started again when it has ended; until a
// killed one has left the kernel, no other is started. It ends by itself when the monitor's process
// has ended.
//
// Threads: latest() from anywhere. A thread of its own, started with the first latest(), reads the
// reports; it never calls the driver. The destructor ends both: it waits kGpuKilledMax at most.
// Errors: none; the reasons for which GPUs cannot be read are logged, each once until it changes.
// Lifetime: the clock must outlive it.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "containers/gpu/gpu_usage.hpp"
#include "os/packet_socket.hpp"

namespace trainyard::containers {

// A killed process leaves the kernel within milliseconds, unless the driver hangs.
inline constexpr Duration kGpuKilledMax = 1s;

struct GpuMonitorLimits {
  // Older usage is not returned. Reports come each second: several were missed.
  Duration age_max = 10s;
  // Between two reports. The first one is sent when the driver has started, which takes half a
  // minute on a machine with eight GPUs that no other process uses.
  Duration report_max = 1min;
  // Between the end of the process and its next start: a driver that was not loaded may be now.
  Duration restart_interval = 1min;
};

class GpuMonitor {
 public:
  // `command`: the program and its arguments; empty: the host has no GPU, and nothing is started.
  GpuMonitor(std::vector<std::string> command, Clock& clock, GpuMonitorLimits limits = {});
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;

  // Returns the usage of the GPUs; empty when it is not known. Does not wait.
  std::vector<GpuUsage> latest();

 private:
  void run();
  Result<void> follow_one();
  Result<void> read_reports(const os::PacketSocket& socket);
  bool pause();

  const std::vector<std::string> command_;
  Clock& clock_;
  const GpuMonitorLimits limits_;

  Mutex mutex_;
  ConditionVariable stopping_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  const os::PacketSocket* socket_ GUARDED_BY(mutex_) = nullptr;  // while the process runs
  std::vector<GpuUsage> usage_ GUARDED_BY(mutex_);
  std::chrono::nanoseconds read_at_ GUARDED_BY(mutex_){};
  std::thread thread_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::containers
