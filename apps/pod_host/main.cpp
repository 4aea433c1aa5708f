// trainyard-pod-host is the program of a Kubernetes pod: it prepares one host of a gang
// (launch/nodes/host_run.hpp) and becomes the host's agent, which ends with the pod. This file only
// wires modules.
//
//   trainyard-pod-host ORDERS_DIRECTORY   reads the order from the file $JOB_COMPLETION_INDEX there,
//                                         and from the file `shared`, if it exists
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/text.hpp"
#include "launch/nodes/host_run.hpp"
#include "launch/nodes/pod_gpus.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/process.hpp"

namespace trainyard {
namespace {

// The tries to resolve the names of the gang's other pods, one per second: a day, since these pods
// may be pending. The user can stop the job earlier.
constexpr uint32_t kLookupsMax = 24 * 60 * 60;
constexpr size_t kGpuInformationBytesMax = 64 << 10;
constexpr size_t kMountsBytesMax = 16 << 20;

// Replaces this process by the agent. Returns only if that fails.
Error become(const os::Command& command) {
  std::vector<char*> arguments;
  for (const auto& argument : command.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  for (const auto& [name, value] : command.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execv(arguments[0], arguments.data());
  return from_errno("starting " + command.arguments[0]);
}

// NVIDIA's container toolkit mounts over a part of /proc. The kernel then lets no user namespace,
// such as a job's, mount a /proc of its own, unless another /proc is wholly visible.
Result<void> keep_whole_proc() {
  const std::string mounts = TRY(os::read_file("/proc/self/mounts", kMountsBytesMax));
  if (mounts.find(" /proc/") == std::string::npos) return ok();
  const std::string place = "/run/trainyard-proc";
  TRY(os::make_directories(place, 0700));
  if (::mount("proc", place.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return from_errno("mounting " + place);
  return ok();
}

Result<std::string> own_gpus() {
  const std::string directory = "/proc/driver/nvidia/gpus";  // has a directory by address of each
  std::vector<launch::DriverGpu> gpus;
  if (os::exists(directory))
    for (const auto& address : TRY(os::list_directory(directory))) {
      const std::string file = directory + "/" + address + "/information";
      gpus.push_back(
          TRY(launch::read_driver_gpu(TRY(os::read_file(file, kGpuInformationBytesMax))).in(file)));
    }
  return launch::pod_gpus(os::environment_variable("NVIDIA_VISIBLE_DEVICES"), gpus)
      .in("finding the pod's GPUs");
}

Result<launch::HostOrder> read_order(const std::string& directory) {
  const auto index =
      TRY(parse_int(os::environment_variable("JOB_COMPLETION_INDEX")).in("JOB_COMPLETION_INDEX"));
  const std::string file = directory + "/" + std::to_string(index);
  const std::string text = TRY(os::read_file(file, launch::kHostOrderBytesMax));
  const std::string shared_file = directory + "/" + launch::kSharedOrderFile;
  if (!os::exists(shared_file)) return launch::read_host_order(text).in(file);
  const std::string shared = TRY(os::read_file(shared_file, launch::kHostOrderBytesMax));
  return launch::join_order(shared, text).in(file);
}

Result<void> run(const std::string& directory) {
  const auto order = TRY(read_order(directory));
  launch::NodeFacts node;
  node.name = os::environment_variable("POD_NAME");
  // The number must be unique on its node only, and each pod counts as a node.
  node.job_number = std::to_string(order.record.attempt.job);
  node.program_directory = os::program_directory();
  node.lookups_max = kLookupsMax;
  if (order.gpus > 0) node.gpus = TRY(own_gpus());
  TRY(keep_whole_proc());
  return become(TRY(launch::prepare_host(order, node, launch::machine_parts())));
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  using namespace trainyard;
  os::MachineClock clock;
  set_log(
      [](Level, std::string_view line) {
        std::fprintf(stderr, "%.*s\n", int(line.size()), line.data());
      },
      clock, Level::warning);
  if (argc != 2) {
    std::fputs("usage: trainyard-pod-host ORDERS_DIRECTORY\n", stderr);
    return 2;
  }
  // The kernel delivers only signals with a handler to this process, which is number 1 of the pod.
  for (const int number : {SIGTERM, SIGINT})
    ::signal(number, [](int signal) { ::_exit(128 + signal); });
  const auto done = run(argv[1]);
  std::fprintf(stderr, "trainyard-pod-host: %s\n", done.error().message.c_str());
  return 1;
}
