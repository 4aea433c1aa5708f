#include "containers/gpu/gpu_monitor.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <utility>

#include "base/log.hpp"
#include "os/process.hpp"

namespace trainyard::containers {

GpuMonitor::GpuMonitor(std::vector<std::string> command, Clock& clock, GpuMonitorLimits limits)
    : command_(std::move(command)), clock_(clock), limits_(limits) {}

GpuMonitor::~GpuMonitor() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    if (socket_) ::shutdown(socket_->descriptor(), SHUT_RDWR);
    thread = std::move(thread_);
  }
  stopping_.notify_all();
  if (thread.joinable()) thread.join();
}

std::vector<GpuUsage> GpuMonitor::latest() {
  const MutexLock lock(mutex_);
  if (command_.empty()) return {};
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  if (clock_.monotonic() - read_at_ > limits_.age_max) return {};
  return usage_;
}

void GpuMonitor::run() {
  std::string logged;
  do {
    const auto ended = follow_one();
    {
      const MutexLock lock(mutex_);
      if (stopped_) return;
    }
    if (ended || ended.error().message == logged) continue;
    logged = ended.error().message;
    log(Level::warning, "containers", "cannot read the usage of GPUs", {{"why", logged}});
  } while (!pause());
}

// Runs the process once, to its end.
Result<void> GpuMonitor::follow_one() {
  auto [socket, theirs] = TRY(os::PacketSocket::pair());
  const pid_t child = TRY(os::spawn_child(command_, theirs.descriptor()));
  theirs.close();
  {
    const MutexLock lock(mutex_);
    if (stopped_) ::shutdown(socket.descriptor(), SHUT_RDWR);
    socket_ = &socket;
  }
  auto ended = read_reports(socket);
  {
    const MutexLock lock(mutex_);
    socket_ = nullptr;
  }
  ::kill(-child, SIGKILL);
  if (os::reap_child(child, kGpuKilledMax)) return ended;
  log(Level::warning, "containers", "the process that reads GPUs hangs in the driver",
      {{"process", std::to_string(child)}});
  while (!pause() && !os::reap_child(child, Duration{})) {
  }
  return ended;
}

Result<void> GpuMonitor::read_reports(const os::PacketSocket& socket) {
  for (auto last = clock_.monotonic();;) {
    const auto packet = socket.receive(limits_.report_max);
    if (!packet)
      return unavailable("the process that calls NVML has ended: the driver may have crashed it");
    const auto now = clock_.monotonic();
    if (!*packet) {  // also after a signal
      if (now - last < limits_.report_max) continue;
      return unavailable("the driver did not respond within " +
                         std::to_string(limits_.report_max.count()) + " ms");
    }
    last = now;
    auto report = TRY(parse_gpu_report((*packet)->bytes));
    if (!report.error.empty()) return unavailable(report.error);
    const MutexLock lock(mutex_);
    usage_ = std::move(report.gpus);
    read_at_ = now;
  }
}

// Waits before the next try. Returns true at the end of the monitor.
bool GpuMonitor::pause() {
  MutexLock lock(mutex_);
  return stopping_.wait_for(lock, limits_.restart_interval,
                            [&]() REQUIRES(mutex_) { return stopped_; });
}

}  // namespace trainyard::containers
