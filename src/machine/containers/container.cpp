#include "containers/container.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"
#include "containers/architecture.hpp"
#include "containers/cgroup.hpp"
#include "containers/compiled_filter.hpp"
#include "containers/container_plan.hpp"
#include "containers/container_record.hpp"
#include "containers/id_range.hpp"
#include "containers/oci_bundle.hpp"
#include "containers/process_limits.hpp"
#include "containers/process_usage.hpp"
#include "containers/rootless_sandbox.hpp"
#include "containers/runtime.hpp"
#include "containers/runtime_process.hpp"
#include "containers/system_call_filter.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/process_identity.hpp"

extern char** environ;

namespace trainyard::containers {
namespace {

using Steady = std::chrono::steady_clock;

// the runtime needs about 20 ms; with a cold disk or a machine that swaps, seconds
constexpr std::chrono::seconds kStartMax{60};
// SIGKILL to PID 1 ends its PID namespace at once, unless the kernel writes a core file or waits
// for a disk
constexpr Duration kKillMax = 10s;
constexpr size_t kRuntimeLogBytesMax = 64 << 10;

// The directory of the machine over which each container's mount namespace mounts its stage. All
// users may search its parents.
std::string stage_path() { return run_directory() + "/stage"; }
constexpr size_t kMountinfoBytesMax = 16 << 20;

int to_exit_code(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

// Returns the last lines of the runtime's log.
std::string runtime_message(const std::string& directory) {
  const auto text = os::read_file(directory + "/" + kRuntimeLog, kRuntimeLogBytesMax);
  return text ? to_utf8(trim(*text)) : "";
}

Error runtime_error(const std::string& output, int code) {
  const std::string message =
      "the container runtime: " + (output.empty() ? "exit code " + std::to_string(code) : output);
  const auto says = [&](std::string_view part) { return output.find(part) != std::string::npos; };
  if (says("executable file") && says("not found")) return not_found(output);
  if (says("No such file or directory")) return not_found(message);
  if (says("Permission denied") || says("Operation not permitted")) return denied(message);
  if (says("No space left") || says("Cannot allocate memory") ||
      says("Resource temporarily unavailable"))
    return exhausted(message);
  return internal(message);
}

void remove_what_we_made(const std::string& directory, const std::string& layer_directory) {
  const auto remove = [](const std::string& path) {
    if (auto removed = os::remove_all(path); !removed)
      log(Level::warning, "containers",
          "cleaning up after a container: " + removed.error().message);
  };
  for (const char* name : {kConfigFile, kProcessFile, kProcessPipe, kRuntimeLog, kCopyDirectory})
    remove(directory + "/" + name);
  for (const char* name : {kUpperDirectory, kWorkDirectory}) remove(layer_directory + "/" + name);
}

Result<void> remove_cgroup(const std::string& name) {
  const Cgroup cgroup = Cgroup::named(name);
  TRY(cgroup.kill(kKillMax));
  TRY(cgroup.remove());
  remove_record(name);
  return ok();
}

class CrunContainer final : public Container {
 public:
  CrunContainer(const ContainerSpec& spec, std::string cgroup_name, Cgroup cgroup,
                std::vector<std::string> withheld)
      : directory_(spec.directory),
        layer_directory_(layer_directory_of(spec)),
        cgroup_name_(std::move(cgroup_name)),
        cgroup_(std::move(cgroup)),
        withheld_(std::move(withheld)) {}

  ~CrunContainer() override {
    kill_all();
    if (auto killed = cgroup_.kill(kKillMax); !killed)
      log(Level::warning, "containers", killed.error().message);
    reap();
    if (auto removed = cgroup_.remove(); !removed)
      log(Level::warning, "containers", removed.error().message);
    remove_record(cgroup_name_);
    remove_what_we_made(directory_, layer_directory_);
  }

  // Called once the runtime has been started; `runtime` is its pidfd.
  void runs(pid_t process, os::File runtime) {
    exit_.reset();
    runtime_process_ = process;
    runtime_ = std::move(runtime);
  }

  // Waits until the first process is about to run, when its number arrives in the pipe.
  Result<void> await_start(const os::File& process_pipe) {
    const auto deadline = Steady::now() + kStartMax;
    for (;;) {
      pollfd news[] = {{process_pipe.descriptor(), POLLIN, 0}, {runtime_.descriptor(), POLLIN, 0}};
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
      if (left <= 0)
        return unavailable(
            "waiting for the container runtime: timed out after a minute without a process");
      if (::poll(news, 2, int(left)) < 0 && errno != EINTR)
        return from_errno("waiting for the container runtime");
      char text[64];
      const ssize_t got = ::read(process_pipe.descriptor(), text, sizeof text);
      if (const auto number =
              got > 0 ? parse_int(trim({text, size_t(got)})) : Result<int64_t>(not_found(""));
          number && *number > 0) {
        first_process_ = os::File(int(::syscall(SYS_pidfd_open, pid_t(*number), 0)));
        // If the first process has already ended, the number may belong to another process now.
        if (first_process_ && parent_of(int(*number)) != runtime_process_) first_process_.close();
        return os::write_file(directory_ + "/" + kProcessFile, std::to_string(*number), 0600);
      }
      if (news[1].revents != 0) {
        reap();
        return runtime_error(runtime_message(directory_), exit_->code);
      }
    }
  }

  Result<void> signal(int number) override {
    if (!first_process_ ||
        ::syscall(SYS_pidfd_send_signal, first_process_.descriptor(), number, nullptr, 0) != 0) {
      if (!first_process_ || errno == ESRCH)
        return not_found("the container's first process has ended");
      return from_errno("sending signal " + std::to_string(number));
    }
    return ok();
  }

  void kill_all() override {
    if (first_process_)
      ::syscall(SYS_pidfd_send_signal, first_process_.descriptor(), SIGKILL, nullptr, 0);
  }

  Result<std::optional<ContainerExit>> wait(Duration at_most) override {
    const auto deadline = Steady::now() + at_most;
    while (!exit_) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
      pollfd ended{runtime_.descriptor(), POLLIN, 0};
      const int ready = ::poll(&ended, 1, int(std::clamp<int64_t>(left, 0, INT_MAX)));
      if (ready < 0 && errno != EINTR) return from_errno("waiting for a container");
      if (ready > 0)
        reap();
      else if (left <= 0)
        return std::optional<ContainerExit>();
    }
    return exit_;
  }

  std::vector<std::string> withheld() const override { return withheld_; }
  const Cgroup& cgroup() const { return cgroup_; }
  // Called before start_container() returns.
  void withhold(std::string notice) { withheld_.push_back(std::move(notice)); }
  bool out_of_memory() const override { return cgroup_.out_of_memory(); }
  Result<ContainerUsage> usage() override {
    const auto cpu = cgroup_.cpu_used();
    const auto memory = cgroup_.memory_used();
    if ((!cpu || !memory) && in_rootless_sandbox()) return usage_of_other_processes();
    if (!cpu || !memory)
      return unavailable("reading a container's usage: this machine does not count it");
    return ContainerUsage{*cpu, *memory};
  }
  std::vector<ProcessMemory> largest_processes(size_t count_max) override {
    return largest(cgroup_.processes(), count_max);
  }

 private:
  void reap() {
    if (exit_ || !runtime_) return;
    siginfo_t info = {};
    int waited;
    do
      waited = ::waitid(idtype_t(3) /* P_PIDFD */, unsigned(runtime_.descriptor()), &info, WEXITED);
    while (waited != 0 && errno == EINTR);
    // The runtime was killed by the memory limit or an operator. Its container must end, since it
    // is no longer supervised.
    if (waited != 0 || info.si_code != CLD_EXITED) kill_all();
    exit_ = ContainerExit{waited == 0 ? to_exit_code(info) : 255, cgroup_.out_of_memory(),
                          waited != 0 || info.si_code != CLD_EXITED};
  }

  const std::string directory_;
  const std::string layer_directory_;
  const std::string cgroup_name_;
  const Cgroup cgroup_;
  std::vector<std::string> withheld_;  // immutable after start_container() has returned
  pid_t runtime_process_ = -1;
  os::File runtime_;
  os::File first_process_;  // set before start_container() returns, then immutable
  std::optional<ContainerExit> exit_;
};

// Copies the whole image as the container's root, if the kernel rejects an overlay. Slow, but
// correct.
Result<void> copy_image(const std::string& image_root, const std::string& directory) {
  const std::string copy = directory + "/" + kCopyDirectory;
  TRY(os::remove_all(copy));
  TRY(os::run_or_fail({{"cp", "-a", "--reflink=auto", image_root, copy}, {}, "", "", 10min}));
  return ok();
}

// Makes the FIFO to which the runtime writes the process number, so that this process is woken at
// once.
Result<os::File> make_process_pipe(const std::string& directory) {
  const std::string path = directory + "/" + kProcessPipe;
  if (::mkfifo(path.c_str(), 0600) != 0) return from_errno("making " + path);
  os::File reading(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!reading) return from_errno("opening " + path);
  return reading;
}

Result<void> make_stage() {
  TRY(os::make_directories(stage_path(), 0755));
  // Sets the mode independently of the umask, because root of a container searches this directory.
  for (const auto& path : {stage_path(), run_directory()})
    if (::chmod(path.c_str(), 0755) != 0) return from_errno("opening " + path);
  return ok();
}

// Makes the cgroup with all limits or, in a rootless sandbox, with those that were delegated to the
// user.
Result<Cgroup> make_cgroup(const std::string& name, ContainerSpec& spec,
                           std::vector<std::string>& withheld) {
  CgroupLimits limits{spec.cpus, spec.memory_bytes, spec.pids_max, spec.devices};
  if (!in_rootless_sandbox()) return Cgroup::make(name, limits);
  std::string what;
  const auto give_up = [&](const char* name) {
    what += (what.empty() ? "" : ", ") + std::string(name);
  };
  if (limits.cpus > 0 && !cgroup_layout().with("cpu")) limits.cpus = 0, give_up("cpus");
  if (limits.memory_bytes > 0 && !cgroup_layout().with("memory"))
    limits.memory_bytes = 0, give_up("memory");
  if (limits.pids_max > 0 && !cgroup_layout().with("pids")) {
    limits.pids_max = 0;
    if (!(spec.pids_max_by_user = may_limit_processes_by_user(spec.pids_max))) give_up("processes");
  }
  if (!what.empty())
    withheld.push_back(
        "this job's share is not enforced (" + what +
        "): the server runs as an ordinary user, to whom no cgroup for it was delegated");
  auto made = Cgroup::make(name, limits);
  if (made) return made;
  // The controller is listed but cannot be used: under v2, in a group with other processes.
  spec.pids_max_by_user = may_limit_processes_by_user(spec.pids_max);
  withheld = {std::string("this job's share is not enforced (cpus, memory") +
              (spec.pids_max_by_user ? "" : ", processes") + "): " + made.error().message};
  (void)Cgroup::named(name).remove();
  static const CgroupLayout none;
  return Cgroup::named(name, none);
}

// The ids of one container, and the namespaces that map its mounts to them.
struct Ids {
  std::optional<IdRange> range;  // unset: it has no user namespace
  os::File user_namespace;
  std::vector<os::File> of_identities;   // open while the plan is used
  std::vector<int> identity_namespaces;  // by the index of each mount; -1: without an identity
  bool shifted() const { return range && range->shifted(); }
};

// Makes the container run without a user namespace, if its spec permits that: as root without
// capabilities (docs/decisions).
Result<void> give_up_user_namespace(const ContainerSpec& spec, const std::string& why, Ids& ids,
                                    CrunContainer& container) {
  if (!spec.best_effort_isolation)
    return denied(
        "making a container's user namespace, which keeps its root without rights on this "
        "machine: " +
        why + ". Set isolation = \"best-effort\" in the config to run jobs without one");
  log(Level::warning, "containers", "running a container without a user namespace", {{"why", why}});
  container.withhold(
      "isolation is best-effort: this container has no user namespace, and root in it is root of "
      "this machine without capabilities: " +
      why);
  ids = {};
  return ok();
}

// Maps mounts with an identity: files of the identity show the container's first user, all other
// files the overflow user.
Result<void> map_identities(const ContainerSpec& spec, Ids& ids) {
  if (!ids.shifted()) return ok();
  std::vector<std::pair<PosixIdentity, int>> known;
  for (const auto& each : spec.mounts) {
    int& mapped = ids.identity_namespaces.emplace_back(-1);
    if (!each.identity) continue;
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](const auto& one) { return one.first == *each.identity; });
    if (same != known.end()) {
      mapped = same->second;
      continue;
    }
    if (each.identity->user_id == 0 || each.identity->group_id == 0)
      return invalid("invalid identity of the mount " + each.destination +
                     ": a shared directory cannot be written as root");
    ids.of_identities.push_back(
        TRY(make_user_namespace(IdMap{each.identity->user_id, ids.range->first + spec.user_id},
                                IdMap{each.identity->group_id, ids.range->first + spec.group_id})));
    mapped = ids.of_identities.back().descriptor();
    known.emplace_back(*each.identity, mapped);
  }
  return ok();
}

// Sets the owner of file systems that cannot be mapped.
Result<void> set_owners(const ContainerSpec& spec, const Ids& ids) {
  const uint32_t first = ids.shifted() ? ids.range->first : 0;
  for (const auto& each : spec.mounts)
    if (each.set_owner) TRY(each.set_owner({first + spec.user_id, first + spec.group_id}));
  return ok();
}

Result<Ids> make_ids(const ContainerSpec& spec, const IdRange& range, CrunContainer& container) {
  Ids ids;
  ids.range = range;
  if (!range.shifted()) return ids;
  auto made = make_user_namespace(range);
  if (made)
    ids.user_namespace = std::move(*made);
  else
    TRY(give_up_user_namespace(spec, made.error().message, ids, container));
  TRY(map_identities(spec, ids));
  return ids;
}

// Chooses an alternative after a failed step of the plan. Errors: no alternative is left.
Result<void> fall_back(const ContainerSpec& spec, const PlanStep& step, const Error& error,
                       int error_number, RootKind& kind, Ids& ids, CrunContainer& container) {
  const bool unsupported = error_number == EINVAL || error_number == ENODEV ||
                           error_number == EPERM || error_number == EOPNOTSUPP ||
                           error_number == ENOSYS;
  if (unsupported && ids.shifted() && step.what == PlanStep::What::bind_mapped)
    return give_up_user_namespace(
        spec, error.message + " (its file system cannot be mapped to other ids)", ids, container);
  if (!unsupported || kind != RootKind::overlay || !step.of_image) return error;
  log(Level::warning, "containers", "cannot mount an overlay over an image; copying it instead",
      {{"image", spec.image_root}});
  kind = RootKind::copy;
  return ok();
}

// Makes empty directories for the container's root.
Result<void> prepare_root(const ContainerSpec& spec, const std::string& name, RootKind kind) {
  remove_what_we_made(spec.directory, layer_directory_of(spec));
  if (kind == RootKind::copy) TRY(copy_image(spec.image_root, spec.directory));
  TRY(os::make_directories(runtime_root(), 0700));
  TRY(os::remove_all(runtime_root() + "/" + name));  // left by a killed predecessor
  if (kind == RootKind::overlay)
    for (const char* layer : {kUpperDirectory, kWorkDirectory})
      TRY(os::make_directories(layer_directory_of(spec) + "/" + layer, 0755));
  return ok();
}

// Writes the runtime's configuration. `program`: the compiled filter; "": the runtime compiles it.
Result<void> write_config(const ContainerSpec& spec, Json config, const std::string& program) {
  // Keeps the filter in the configuration, for runtimes that do not support the annotation.
  if (!program.empty()) config["annotations"] = {{kFilterAnnotation, to_base64(program)}};
  return os::write_file(spec.directory + "/" + kConfigFile, dump(config), 0600);
}

// Makes and limits the container's cgroup after its record was written. Removes the record on
// failure.
Result<std::unique_ptr<CrunContainer>> make_limited(const std::string& name, ContainerSpec& spec) {
  std::vector<std::string> withheld;
  raise_limits(spec.limits, withheld);
  auto cgroup = make_cgroup(name, spec, withheld);
  if (cgroup)
    return std::make_unique<CrunContainer>(spec, name, *std::move(cgroup), std::move(withheld));
  (void)remove_cgroup(name);
  return std::move(cgroup).error().in("limiting the container " + spec.id);
}

}  // namespace

Result<std::unique_ptr<Container>> start_container(const ContainerSpec& wanted,
                                                   int output_descriptor) {
  os::File output(output_descriptor);
  if (::geteuid() != 0)
    return denied("starting a container: only root of the machine or of a user namespace may");
  const std::string runtime = TRY(find_runtime());
  ContainerSpec spec = wanted;
  // In a rootless sandbox nothing is mapped, and mounts below others cannot be bound separately.
  if (!in_rootless_sandbox())
    spec.mounts = with_mounts_below(wanted.mounts,
                                    TRY(os::read_file("/proc/self/mountinfo", kMountinfoBytesMax)));
  // The container's view of this machine's system does not change while it runs; an upgrade is
  // visible after the next start.
  const auto system = spec.image_root.empty() ? system_entries() : std::vector<SystemEntry>();
  const Stage stage{stage_path()};
  const Json filter = TRY(make_system_call_filter(
      TRY(system_call_profile()), machine_architecture(), container_capabilities()));
  const CompiledFilter compiled(filter, runtime);
  const std::string program = compiled.read();
  TRY(check_container(spec, system));
  TRY(os::make_directories(spec.directory, 0700));
  TRY(make_stage());

  const std::string name = cgroup_name(spec.id, spec.directory);
  TRY(write_record(name));
  const IdRange range = TRY(claim_id_range(name, has_container));
  TRY(add_ids(name, range.first));
  auto container = TRY(make_limited(name, spec));
  Ids ids = TRY(make_ids(spec, range, *container));
  RootKind kind = spec.image_root.empty() ? RootKind::tmpfs : RootKind::overlay;
  for (;;) {
    TRY(prepare_root(spec, name, kind));
    TRY(set_owners(spec, ids));
    const Bundle bundle = make_bundle(spec, system, stage, ids.range, filter);
    TRY(write_config(spec, bundle.config, program));
    ChildPlan plan = TRY(make_plan(spec, bundle, stage, container->cgroup(), kind, ids.range,
                                   ids.user_namespace.descriptor(), ids.identity_namespaces));
    add_runtime(plan, stage, runtime);
    const os::File process_pipe = TRY(make_process_pipe(spec.directory));
    auto begun = TRY(start_runtime(plan, stage.runtime(), spec.directory, name, spec.input,
                                   output.descriptor()));
    if (begun.failure) {
      const auto [step, error_number] = *begun.failure;
      TRY(fall_back(spec, plan.steps()[step], plan.explain(step, error_number), error_number, kind,
                    ids, *container));
      continue;
    }
    container->runs(begun.process, std::move(begun.ended));
    auto started = container->await_start(process_pipe);
    if (started) break;
    // The image may be the cause of the runtime's message, so the machine itself is checked.
    const auto lets = ids.shifted() ? try_user_namespace() : ok();
    if (lets) return std::move(started).error();
    TRY(give_up_user_namespace(spec, lets.error().message, ids, *container));
  }
  output.close();
  if (program.empty()) compiled.store(name);
  if (cgroup_layout().with("cpu")) TRY(container->cgroup().limit_cpus(spec.cpus));
  return std::unique_ptr<Container>(std::move(container));
}

Result<void> remove_container(const std::string& id, const std::string& directory) {
  const std::string name = cgroup_name(id, directory);
  if (has_container(name)) TRY(remove_cgroup(name));
  return os::remove_all(directory);
}

Result<void> remove_containers_in(const std::string& directory) {
  std::vector<std::string> directories = {directory};
  if (const auto names = os::list_directory(directory))
    for (const auto& name : *names) directories.push_back(directory + "/" + name);
  for (const auto& name : Cgroup::names()) {
    // Matches any id: the suffix of the name depends only on the directory.
    const std::string_view id = std::string_view(name).substr(0, name.rfind('.'));
    for (const auto& candidate : directories)
      if (cgroup_name(id, candidate) == name)
        TRY(remove_cgroup(name).in("removing container " + name));
  }
  return ok();
}

Result<std::vector<std::string>> sweep_containers() {
  std::vector<std::string> removed;
  for (const auto& name : Cgroup::names()) {
    if (starter_is_alive(name)) continue;
    TRY(remove_cgroup(name).in("removing container " + name));
    removed.push_back(name);
  }
  return removed;
}

}  // namespace trainyard::containers
