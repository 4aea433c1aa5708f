#include "host/container.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
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
#include "host/cgroup.hpp"
#include "host/files.hpp"
#include "host/oci_bundle.hpp"
#include "host/process.hpp"
#include "host/process_identity.hpp"

extern char** environ;

namespace trainyard::host {
namespace {

using Steady = std::chrono::steady_clock;

// The runtime takes some 20 ms; a machine that swaps or a cold disk may take seconds.
constexpr std::chrono::seconds kStartMax{60};
// The runtime says that the process runs by writing a file; looked for this often.
constexpr int kStartPollMilliseconds = 1;
// SIGKILL to PID 1 of a PID namespace ends all of it at once, unless the kernel is busy writing a core or
// waits for a disk.
constexpr Duration kKillMax = 10s;
constexpr size_t kRuntimeLogBytesMax = 64 << 10;

// Who started which container: one file each, by the cgroup's name, "PID START DIRECTORY". What a sweep goes
// by.
constexpr const char* kRecords = "/run/trainyard/containers";

// Names below a container's directory.
constexpr const char* kConfigFile = "config.json";
constexpr const char* kProcessFile = "pid";
constexpr const char* kRuntimeLog = "runtime.log";
constexpr const char* kRuntimeState = "runtime";
constexpr const char* kRoot = "root";    // mounted over, in the container's mount namespace only
constexpr const char* kUpper = "upper";  // the writable layer over an image
constexpr const char* kWork = "work";
constexpr const char* kCopy = "copy";  // of an image, where overlays are refused

Result<std::string> find_runtime() {
  const char* path = ::getenv("PATH");
  for (const auto folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const std::string candidate = std::string(folder) + "/crun";
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return not_found("no OCI runtime: 'crun' is not on PATH; install the package crun");
}

// What the child does between fork and exec: system calls only, on text made before. A step that fails is
// told to the parent by its index and errno.
class ChildPlan {
 public:
  enum class What {
    enter_cgroup,
    private_mounts,
    unmount,
    mount_tmpfs,
    mount_overlay,
    mount_bind,
    make_directory,
    make_file,
    make_link
  };

  struct Step {
    What what;
    std::string first;   // path
    std::string second;  // options, source, link's target
    unsigned mode = 0;
  };

  void add(What what, std::string first = "", std::string second = "", unsigned mode = 0) {
    steps_.push_back({what, std::move(first), std::move(second), mode});
  }
  const Step& step(size_t index) const { return steps_[index]; }
  size_t size() const { return steps_.size(); }

  // 0 or an error number. Requires: the caller has one thread.
  static int carry_out(const Step& step) {
    const char* first = step.first.c_str();
    const char* second = step.second.c_str();
    bool done = false;
    switch (step.what) {
      case What::enter_cgroup: {
        const int file = ::open(first, O_WRONLY | O_CLOEXEC);
        done = file >= 0 && ::write(file, "0", 1) == 1;
        break;
      }
      case What::private_mounts:
        // Slave rather than private: what the machine unmounts does not stay busy because of us.
        done = ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
        break;
      case What::unmount:
        done = ::umount2(first, MNT_DETACH) == 0;
        break;
      case What::mount_tmpfs:
        done = ::mount("tmpfs", first, "tmpfs", MS_NOSUID | MS_NODEV, second) == 0;
        break;
      case What::mount_overlay:
        // nodev: an image may bring device files.
        done = ::mount("overlay", first, "overlay", MS_NOSUID | MS_NODEV, second) == 0;
        break;
      case What::mount_bind:
        done = ::mount(second, first, nullptr, MS_BIND, nullptr) == 0 &&
               ::mount(nullptr, first, nullptr, MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV, nullptr) == 0;
        break;
      case What::make_directory:
        done = ::mkdir(first, step.mode) == 0 && ::chmod(first, step.mode) == 0;
        break;
      case What::make_file: {
        const int file = ::open(first, O_WRONLY | O_CREAT | O_CLOEXEC, step.mode);
        done = file >= 0 && ::close(file) == 0;
        break;
      }
      case What::make_link:
        done = ::symlink(second, first) == 0;
        break;
    }
    return done ? 0 : errno;
  }

  Error explain(size_t index, int error_number) const {
    static constexpr const char* kDoing[] = {
        "entering the cgroup ",  "making a mount namespace", "unmounting ",
        "mounting a tmpfs at ",  "mounting an overlay at ",  "binding at ",
        "making the directory ", "making the file ",         "making the link "};
    const Step& failed = steps_[index];
    return from_errno(kDoing[size_t(failed.what)] + failed.first, error_number);
  }

 private:
  std::vector<Step> steps_;
};

struct ChildFailure {
  size_t step;
  int error_number;
};

// What the child needs, made before it is forked.
struct Launch {
  ChildPlan plan;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int input, output, failure;
};

[[noreturn]] void be_the_child(const Launch& launch) {
  // Its own session: signals of a terminal are not for it. Default actions and no blocked signal, as exec
  // keeps both.
  ::setsid();
  for (int number = 1; number < NSIG; number++) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // A group that limits cpus takes no process of a real-time policy.
  const sched_param usual = {};
  (void)::sched_setscheduler(0, SCHED_OTHER, &usual);
  // Directories are made with the modes that were asked for.
  ::umask(0022);
  for (size_t i = 0; i < launch.plan.size(); i++) {
    if (const int error_number = ChildPlan::carry_out(launch.plan.step(i))) {
      const ChildFailure failure{i, error_number};
      (void)!::write(launch.failure, &failure, sizeof failure);
      ::_exit(127);
    }
  }
  ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  if (::dup2(launch.input, 0) >= 0 && ::dup2(launch.output, 1) >= 0 && ::dup2(launch.output, 2) >= 0)
    ::execve(launch.arguments[0], launch.arguments.data(), launch.environment.data());
  const ChildFailure failure{launch.plan.size(), errno};
  (void)!::write(launch.failure, &failure, sizeof failure);
  ::_exit(127);
}

int to_exit_code(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

// The runtime's own last words: lines of its log.
std::string runtime_words(const std::string& directory) {
  const auto text = read_file(directory + "/" + kRuntimeLog, kRuntimeLogBytesMax);
  return text ? to_utf8(trim(*text)) : "";
}

Error runtime_error(const std::string& words, int code) {
  const std::string message =
      "the container runtime: " + (words.empty() ? "exit code " + std::to_string(code) : words);
  const auto says = [&](std::string_view part) { return words.find(part) != std::string::npos; };
  if (says("executable file") && says("not found")) return not_found(words);
  if (says("No such file or directory")) return not_found(message);
  if (says("Permission denied") || says("Operation not permitted")) return denied(message);
  if (says("No space left") || says("Cannot allocate memory") || says("Resource temporarily unavailable"))
    return exhausted(message);
  return internal(message);
}

void remove_what_we_made(const std::string& directory) {
  for (const char* name :
       {kConfigFile, kProcessFile, kRuntimeLog, kRuntimeState, kRoot, kUpper, kWork, kCopy})
    if (auto removed = remove_all(directory + "/" + name); !removed)
      log(Level::warning, "host", "cleaning up after a container: " + removed.error().message);
}

Result<void> write_record(const std::string& name, const std::string& directory) {
  const auto ours = identify(::getpid());
  if (!ours) return internal("this process does not find itself in /proc");
  TRY(make_directories(kRecords, 0755));
  return write_file(std::string(kRecords) + "/" + name,
                    std::to_string(ours->process) + " " + std::to_string(ours->started) + " " + directory,
                    0600);
}

// Whether the process that started the container of this cgroup still runs. Without a record nobody claims
// it.
bool starter_is_alive(const std::string& name) {
  const auto text = read_file(std::string(kRecords) + "/" + name, 64 << 10);
  if (!text) return false;
  const auto members = split(*text, ' ');
  if (members.size() < 3) return false;
  const auto process = parse_int(members[0]), started = parse_int(members[1]);
  return process && started && is_alive({pid_t(*process), uint64_t(*started)});
}

void remove_record(const std::string& name) { ::unlink((std::string(kRecords) + "/" + name).c_str()); }

Result<void> remove_cgroup(const std::string& name) {
  const Cgroup cgroup = Cgroup::named(name);
  TRY(cgroup.kill(kKillMax));
  TRY(cgroup.remove());
  remove_record(name);
  return ok();
}

class CrunContainer final : public Container {
 public:
  CrunContainer(std::string directory, std::string cgroup_name, Cgroup cgroup)
      : directory_(std::move(directory)), cgroup_name_(std::move(cgroup_name)), cgroup_(std::move(cgroup)) {}

  ~CrunContainer() override {
    kill_all();
    if (auto killed = cgroup_.kill(kKillMax); !killed) log(Level::warning, "host", killed.error().message);
    reap();
    if (auto removed = cgroup_.remove(); !removed) log(Level::warning, "host", removed.error().message);
    remove_record(cgroup_name_);
    remove_what_we_made(directory_);
  }

  // Called once the runtime was started; `runtime` is its pidfd.
  void runs(pid_t process, File runtime) {
    runtime_process_ = process;
    runtime_ = std::move(runtime);
  }

  // Waits until the first process is about to run.
  Result<void> await_start() {
    const auto deadline = Steady::now() + kStartMax;
    const std::string process_file = directory_ + "/" + kProcessFile;
    while (Steady::now() < deadline) {
      pollfd ended{runtime_.descriptor(), POLLIN, 0};
      const bool over = ::poll(&ended, 1, kStartPollMilliseconds) > 0;
      const auto text = read_file(process_file, 64);
      if (const auto number = text ? parse_int(trim(*text)) : Result<int64_t>(not_found(""));
          number && *number > 0) {
        first_process_ = File(int(::syscall(SYS_pidfd_open, pid_t(*number), 0)));
        // The number may be another's by now, when the first process has ended already.
        if (first_process_ && !is_child_of_runtime(*number)) first_process_.close();
        return ok();
      }
      if (over) {
        reap();
        return runtime_error(runtime_words(directory_), exit_->code);
      }
    }
    return unavailable("the container runtime did not start the process within a minute");
  }

  Result<void> signal(int number) override {
    if (!first_process_ ||
        ::syscall(SYS_pidfd_send_signal, first_process_.descriptor(), number, nullptr, 0) != 0) {
      if (!first_process_ || errno == ESRCH) return not_found("the container's first process has ended");
      return from_errno("sending signal " + std::to_string(number));
    }
    return ok();
  }

  void kill_all() override {
    if (first_process_) ::syscall(SYS_pidfd_send_signal, first_process_.descriptor(), SIGKILL, nullptr, 0);
  }

  Result<std::optional<ContainerExit>> wait(Duration at_most) override {
    const auto deadline = Steady::now() + at_most;
    while (!exit_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
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

  Result<ContainerUsage> usage() override {
    const auto cpu = cgroup_.cpu_used();
    const auto memory = cgroup_.memory_used();
    if (!cpu || !memory) return unavailable("this machine does not count what a container uses");
    return ContainerUsage{*cpu, *memory};
  }

 private:
  bool is_child_of_runtime(int64_t process) const {
    const auto text = read_file("/proc/" + std::to_string(process) + "/stat", 4096);
    if (!text) return false;
    // "PID (name) S PPID ..": the name may hold anything, a ')' included.
    const size_t end = text->rfind(')');
    if (end == std::string::npos) return false;
    const auto members = split(std::string_view(*text).substr(end + 1), ' ');
    return members.size() > 2 && members[2] == std::to_string(runtime_process_);
  }

  void reap() {
    if (exit_ || !runtime_) return;
    siginfo_t info = {};
    int waited;
    do waited = ::waitid(idtype_t(3) /* P_PIDFD */, unsigned(runtime_.descriptor()), &info, WEXITED);
    while (waited != 0 && errno == EINTR);
    // The runtime itself was killed (by the memory limit, by an operator): what it watched must not go on
    // unwatched.
    if (waited != 0 || info.si_code != CLD_EXITED) kill_all();
    exit_ = ContainerExit{waited == 0 ? to_exit_code(info) : 255, cgroup_.out_of_memory()};
  }

  const std::string directory_;
  const std::string cgroup_name_;
  const Cgroup cgroup_;
  pid_t runtime_process_ = -1;
  File runtime_;
  File first_process_;  // set before start_container returns, immutable after
  std::optional<ContainerExit> exit_;
};

std::string machine_architecture() {
  utsname name;
  return ::uname(&name) == 0 ? name.machine : "";
}

// The container's root, when the overlay over an image is refused: a whole copy. Slow, and right.
Result<void> copy_image(const std::string& image_root, const std::string& directory) {
  TRY(remove_all(directory + "/" + kCopy));
  TRY(run_or_fail({{"cp", "-a", "--reflink=auto", image_root, directory + "/" + kCopy}, {}, "", "", 10min}));
  return ok();
}

enum class RootKind { tmpfs, overlay, copy };

ChildPlan make_plan(const ContainerSpec& spec, const Bundle& bundle, const Cgroup& cgroup, RootKind kind) {
  using What = ChildPlan::What;
  ChildPlan plan;
  for (const auto& entrance : cgroup.entrances()) plan.add(What::enter_cgroup, entrance);
  plan.add(What::private_mounts);
  // crun starts on pure v1 or pure v2 only; nothing outside our namespace changes.
  if (!cgroup_layout().hybrid_unified.empty()) plan.add(What::unmount, cgroup_layout().hybrid_unified);
  const std::string root = spec.directory + "/" + kRoot;
  switch (kind) {
    case RootKind::tmpfs:
      plan.add(What::mount_tmpfs, root, "mode=0755,size=" + std::to_string(bundle.root_bytes));
      for (const auto& step : bundle.root) {
        const What what = step.kind == RootStep::Kind::directory ? What::make_directory
                          : step.kind == RootStep::Kind::file    ? What::make_file
                                                                 : What::make_link;
        plan.add(what, root + "/" + step.path, step.target, step.mode);
      }
      break;
    case RootKind::overlay:
      plan.add(What::mount_overlay, root,
               "lowerdir=" + spec.image_root + ",upperdir=" + spec.directory + "/" + kUpper +
                   ",workdir=" + spec.directory + "/" + kWork);
      break;
    case RootKind::copy:
      plan.add(What::mount_bind, root, spec.directory + "/" + kCopy);
      break;
  }
  return plan;
}

// Forks, carries out the plan and becomes the runtime. A failed step comes back with its index.
struct Forked {
  pid_t process = -1;
  File ended;  // pidfd
  std::optional<ChildFailure> failure;
};

Result<Forked> fork_runtime(ChildPlan plan, const std::string& runtime, const std::string& directory,
                            const std::string& id, int output) {
  std::vector<std::string> words = {runtime,
                                    "--root",
                                    directory + "/" + kRuntimeState,
                                    "--log",
                                    "file:" + directory + "/" + kRuntimeLog,
                                    "--cgroup-manager",
                                    "disabled",
                                    "run",
                                    "--bundle",
                                    directory,
                                    "--pid-file",
                                    directory + "/" + kProcessFile,
                                    "--no-new-keyring",
                                    id};
  Launch launch;
  launch.plan = std::move(plan);
  for (auto& word : words) launch.arguments.push_back(word.data());
  launch.arguments.push_back(nullptr);
  // The runtime needs nothing of our environment, and must not find a secret there.
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  launch.environment = {path.data(), nullptr};

  const File input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input) return from_errno("opening /dev/null");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  const File reading(ends[0]);
  File writing(ends[1]);
  launch.input = input.descriptor();
  launch.output = output;
  launch.failure = writing.descriptor();

  Forked forked;
  forked.process = ::fork();
  if (forked.process < 0) return from_errno("starting the container runtime");
  if (forked.process == 0) be_the_child(launch);
  writing.close();
  forked.ended = File(int(::syscall(SYS_pidfd_open, forked.process, 0)));
  const int pidfd_error = errno;
  ChildFailure failure;
  ssize_t got;
  do got = ::read(reading.descriptor(), &failure, sizeof failure);
  while (got < 0 && errno == EINTR);
  if (got == sizeof failure || !forked.ended) {
    if (!forked.ended) ::kill(forked.process, SIGKILL);
    while (::waitpid(forked.process, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (!forked.ended) return from_errno("watching the container runtime", pidfd_error);
    forked.failure = failure;
    if (failure.step == launch.plan.size()) return from_errno("running " + runtime, failure.error_number);
  }
  return forked;
}

}  // namespace

Result<std::unique_ptr<Container>> start_container(const ContainerSpec& spec, int output_descriptor) {
  File output(output_descriptor);
  if (::geteuid() != 0)
    return denied(
        "containers need root here: an ordinary user may neither make cgroups nor join a job's network");
  const std::string runtime = TRY(find_runtime());
  // What a runtime sees of this machine does not change while we run; an upgrade of it shows at the next
  // start.
  const auto bundle =
      TRY(make_bundle(spec, spec.image_root.empty() ? system_entries() : std::vector<SystemEntry>(),
                      spec.directory + "/" + kRoot, machine_architecture()));
  TRY(make_directories(spec.directory, 0700));
  remove_what_we_made(spec.directory);
  for (const char* name : {kRoot, kRuntimeState}) TRY(make_directories(spec.directory + "/" + name, 0700));
  TRY(write_file(spec.directory + "/" + kConfigFile, dump(bundle.config), 0600));
  RootKind kind = RootKind::tmpfs;
  if (!spec.image_root.empty()) {
    kind = RootKind::overlay;
    for (const char* name : {kUpper, kWork}) TRY(make_directories(spec.directory + "/" + name, 0755));
  }

  const std::string name = cgroup_name(spec.id, spec.directory);
  // Before there is anything to sweep.
  TRY(write_record(name, spec.directory));
  auto cgroup = Cgroup::make(name, {spec.cpus, spec.memory_bytes, spec.pids_max, spec.devices});
  if (!cgroup) {
    (void)remove_cgroup(name);
    return std::move(cgroup).error().in("limiting the container " + spec.id);
  }
  auto container = std::make_unique<CrunContainer>(spec.directory, name, *cgroup);
  for (;;) {
    const ChildPlan plan = make_plan(spec, bundle, *cgroup, kind);
    auto forked = TRY(fork_runtime(plan, runtime, spec.directory, spec.id, output.descriptor()));
    if (!forked.failure) {
      container->runs(forked.process, std::move(forked.ended));
      break;
    }
    const bool overlay_refused =
        kind == RootKind::overlay && plan.step(forked.failure->step).what == ChildPlan::What::mount_overlay &&
        (forked.failure->error_number == EINVAL || forked.failure->error_number == ENODEV ||
         forked.failure->error_number == EPERM || forked.failure->error_number == EOPNOTSUPP);
    if (!overlay_refused) return plan.explain(forked.failure->step, forked.failure->error_number);
    log(Level::warning, "host", "this machine refuses an overlay over an image, which is copied instead",
        {{"image", spec.image_root}});
    TRY(copy_image(spec.image_root, spec.directory));
    kind = RootKind::copy;
  }
  output.close();
  TRY(container->await_start());
  TRY(cgroup->limit_cpus(spec.cpus));
  return std::unique_ptr<Container>(std::move(container));
}

Result<void> remove_container(const std::string& id, const std::string& directory) {
  TRY(remove_cgroup(cgroup_name(id, directory)));
  return remove_all(directory);
}

Result<void> remove_containers_in(const std::string& directory) {
  std::vector<std::string> directories = {directory};
  if (const auto names = list_directory(directory))
    for (const auto& name : *names) directories.push_back(directory + "/" + name);
  for (const auto& name : Cgroup::names()) {
    // Whatever its id: the name ends in what only the directory decides.
    const std::string_view id = std::string_view(name).substr(0, name.rfind('.'));
    for (const auto& candidate : directories)
      if (cgroup_name(id, candidate) == name) TRY(remove_cgroup(name).in("removing container " + name));
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

}  // namespace trainyard::host
