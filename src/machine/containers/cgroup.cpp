#include "containers/cgroup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "base/fnv.hpp"
#include "base/text.hpp"
#include "containers/rootless_sandbox.hpp"
#include "os/files.hpp"
#include "os/mounts.hpp"

namespace trainyard::containers {
namespace {

constexpr std::string_view kParent = "trainyard";
// the group of an ordinary user's own processes, under v2
constexpr std::string_view kOwnLeaf = "/trainyard.server";
constexpr int kCpuPeriodMicroseconds = 100'000;  // the kernel's default
// the kernel's default weight of a process or a group, and its maximum: under v1 and under v2
constexpr double kSharesOfCpu = 1024, kSharesMax = 262'144;
constexpr double kWeightOfCpu = 100, kWeightMax = 10'000;
// v1 hierarchies of the server's groups; cpuacct measures usage, freezer prevents forks while
// processes are killed
constexpr std::string_view kControllers[] = {"cpu",  "cpuacct", "memory",
                                             "pids", "devices", "freezer"};
// limit of the list of processes of a group, which has at most pids_max lines
constexpr size_t kProcessListBytesMax = 16 << 20;
// limit of retries: rmdir fails with EBUSY for a moment after the end of the last process
constexpr int kRemoveTriesMax = 500;
constexpr std::chrono::milliseconds kRemovePause{2};
// limit of retries if the parent is removed while a group is made below it
constexpr int kMakeTriesMax = 100;

Result<void> write_value(const std::string& path, std::string_view value) {
  const os::File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return from_errno("opening " + path);
  if (::write(file.descriptor(), value.data(), value.size()) != ssize_t(value.size()))
    return from_errno("writing '" + std::string(value) + "' to " + path);
  return ok();
}

// Returns the number after `name` in a file with lines "name number".
std::optional<int64_t> read_member(const std::string& path, std::string_view name) {
  const auto text = os::read_file(path, 64 << 10);
  if (!text) return {};
  for (const auto line : split(*text, '\n')) {
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.substr(0, blank) != name) continue;
    const auto number = parse_int(trim(line.substr(blank)));
    return number ? std::optional(*number) : std::nullopt;
  }
  return {};
}

Result<void> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return ok();
  return from_errno("making the cgroup " + path);
}

// Makes a group. Retries, because the end of another container may remove the empty parent at any
// time.
Result<void> make_below_parent(const std::string& path) {
  const std::string parent = path.substr(0, path.rfind('/'));
  const bool parent_is_ours = parent.ends_with("/" + std::string(kParent));
  for (int attempt = 0;; attempt++) {
    auto made = make_directory(path);
    if (made || !parent_is_ours || made.error().kind != Kind::not_found || attempt >= kMakeTriesMax)
      return made;
    TRY(make_directory(parent));
  }
}

Result<void> carry_out(const CgroupStep& step) {
  switch (step.what) {
    case CgroupStep::What::make:
      return make_below_parent(step.path);
    case CgroupStep::What::write:
      return write_value(step.path, step.value);
    case CgroupStep::What::write_if_exists:
      return os::exists(step.path) ? write_value(step.path, step.value) : ok();
    case CgroupStep::What::write_if_permitted:
      (void)write_value(step.path, step.value);
      return ok();
  }
  return ok();
}

// Rules for devices.allow: mknod of all devices, which is harmless; read and write of null, zero,
// full, random, urandom, tty, console, ptmx, pts.
Result<std::vector<std::string>> device_rules(const std::vector<std::string>& devices) {
  std::vector<std::string> allowed = {"c *:* m",   "b *:* m",   "c 1:3 rwm",  "c 1:5 rwm",
                                      "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm",  "c 5:0 rwm",
                                      "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm"};
  for (const auto& path : devices) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0)
      return from_errno("reading the status of the device " + path);
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode))
      return invalid("invalid device '" + path + "': not a device file");
    allowed.push_back(std::string(S_ISCHR(status.st_mode) ? "c " : "b ") +
                      std::to_string(major(status.st_rdev)) + ":" +
                      std::to_string(minor(status.st_rdev)) + " rwm");
  }
  return allowed;
}

// Sets weights, which apply when cpus are scarce: each container has the weight of its share, and
// all containers of the server together the weight of the whole machine. Without them a hundred
// processes of containers would have the weight of one other process.
void weigh(std::vector<CgroupStep>& steps, const std::string& directory, double cpus,
           double machine_cpus, const char* file, double of_cpu, double most) {
  const auto weight = [&](double count) {
    return std::to_string(std::llround(std::clamp(of_cpu * count, 2.0, most)));
  };
  constexpr auto kWeigh = CgroupStep::What::write_if_permitted;
  steps.push_back({kWeigh, directory.substr(0, directory.rfind('/')) + file, weight(machine_cpus)});
  steps.push_back({kWeigh, directory + file, weight(cpus > 0 ? cpus : machine_cpus)});
}

double cpus_of_machine() { return double(std::max(1l, ::sysconf(_SC_NPROCESSORS_ONLN))); }

bool is_one_of_ours(const CgroupHierarchy& hierarchy) {
  return hierarchy.unified ||
         std::any_of(std::begin(kControllers), std::end(kControllers), [&](auto wanted) {
           return std::find(hierarchy.controllers.begin(), hierarchy.controllers.end(), wanted) !=
                  hierarchy.controllers.end();
         });
}

std::string directory_in(const CgroupHierarchy& hierarchy, const std::string& name) {
  return hierarchy.path + hierarchy.base + "/" + std::string(kParent) + "/" + name;
}

std::string directory_of(const CgroupLayout& layout, std::string_view controller,
                         const std::string& name) {
  const auto* hierarchy = layout.with(controller);
  return hierarchy ? directory_in(*hierarchy, name) : "";
}

}  // namespace

const CgroupHierarchy* CgroupLayout::with(std::string_view controller) const {
  for (const auto& hierarchy : hierarchies)
    if (std::find(hierarchy.controllers.begin(), hierarchy.controllers.end(), controller) !=
        hierarchy.controllers.end())
      return &hierarchy;
  return nullptr;
}

CgroupLayout parse_cgroup_layout(std::string_view mountinfo) {
  CgroupLayout layout;
  std::string unified, unified_root;
  for (const auto line : split(mountinfo, '\n')) {
    // 35 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const std::string path = os::unescape_mount_path(before[4]);
    if (after[0] == "cgroup2") {
      if (unified.empty()) unified = path, unified_root = os::unescape_mount_path(before[3]);
    } else if (after[0] == "cgroup") {
      CgroupHierarchy hierarchy{path, {}, false, os::unescape_mount_path(before[3])};
      for (const auto option : split(after[2], ','))
        if (option != "rw" && option != "ro" && !option.starts_with("name=") &&
            !option.starts_with("release_agent="))
          hierarchy.controllers.emplace_back(option);
      // Uses the first mount of a hierarchy; later ones show the same tree.
      if (!hierarchy.controllers.empty() && !layout.with(hierarchy.controllers[0]))
        layout.hierarchies.push_back(std::move(hierarchy));
    }
  }
  if (!layout.hierarchies.empty()) {
    layout.mode = unified.empty() ? CgroupMode::v1 : CgroupMode::hybrid;
    layout.hybrid_unified = unified;
  } else if (!unified.empty()) {
    layout.mode = CgroupMode::v2;
    layout.hierarchies.push_back({unified, {}, true, unified_root});
  }
  return layout;
}

CgroupLayout delegated_layout(const CgroupLayout& layout, std::string_view own_groups,
                              const std::function<bool(const std::string& directory)>& writable) {
  CgroupLayout delegated;
  delegated.mode = layout.mode;
  delegated.hybrid_unified = layout.hybrid_unified;
  for (const auto& hierarchy : layout.hierarchies) {
    // Only root of the machine can use the device controller. An ordinary user cannot open other
    // devices in any case.
    if (hierarchy.controllers == std::vector<std::string>{"devices"}) continue;
    for (const auto line : split(own_groups, '\n')) {
      // v1: 4:memory:/user.slice/user-1000.slice; v2: 0::/user.slice/..
      const auto members = split(line, ':');
      if (members.size() < 3) continue;
      const auto names = split(members[1], ',');
      const bool this_one =
          hierarchy.unified
              ? members[1].empty()
              : !hierarchy.controllers.empty() &&
                    std::find(names.begin(), names.end(), hierarchy.controllers[0]) != names.end();
      if (!this_one) continue;
      std::string group(line.substr(members[0].size() + members[1].size() + 2));
      // Paths start at the root of the hierarchy, even if only a part of it is mounted.
      if (hierarchy.root != "/") {
        if (group != hierarchy.root && !group.starts_with(hierarchy.root + "/")) break;
        group.erase(0, hierarchy.root.size());
      }
      if (group == "/") group.clear();
      if (hierarchy.unified && group.ends_with(kOwnLeaf))
        group.resize(group.size() - kOwnLeaf.size());
      if (!writable(hierarchy.path + group)) break;
      delegated.hierarchies.push_back(hierarchy);
      delegated.hierarchies.back().base = group;
      break;
    }
  }
  return delegated;
}

CgroupLayout with_offered_controllers(CgroupLayout layout) {
  for (auto& hierarchy : layout.hierarchies) {
    if (!hierarchy.unified) continue;
    const auto offered =
        os::read_file(hierarchy.path + hierarchy.base + "/cgroup.controllers", 4096);
    if (!offered) continue;
    for (const auto name : split(trim(*offered), ' '))
      if (!name.empty()) hierarchy.controllers.emplace_back(name);
  }
  return layout;
}

const CgroupLayout& machine_cgroup_layout() {
  static const CgroupLayout layout = [] {
    const auto mountinfo = os::read_file("/proc/self/mountinfo", 16 << 20);
    return mountinfo ? with_offered_controllers(parse_cgroup_layout(*mountinfo)) : CgroupLayout();
  }();
  return layout;
}

const CgroupLayout& cgroup_layout() {
  if (!in_rootless_sandbox()) return machine_cgroup_layout();
  static const CgroupLayout delegated = [] {
    const auto own = os::read_file("/proc/self/cgroup", 64 << 10);
    CgroupLayout layout = delegated_layout(
        machine_cgroup_layout(), own ? *own : "", [](const std::string& directory) {
          return ::access(directory.c_str(), W_OK) == 0 &&
                 ::access((directory + "/cgroup.procs").c_str(), W_OK) == 0;
        });
    // Not all controllers of the root may be delegated.
    for (auto& hierarchy : layout.hierarchies)
      if (hierarchy.unified) hierarchy.controllers.clear();
    return with_offered_controllers(std::move(layout));
  }();
  return delegated;
}

void move_to_leaf_cgroup(const std::vector<int>& processes) {
  for (const auto& hierarchy : cgroup_layout().hierarchies) {
    if (!hierarchy.unified) continue;
    const std::string leaf = hierarchy.path + hierarchy.base + std::string(kOwnLeaf);
    if (!make_directory(leaf)) continue;
    for (const int process : processes)
      (void)write_value(leaf + "/cgroup.procs", std::to_string(process));
  }
}

std::string cgroup_name(std::string_view id, std::string_view directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.remove_suffix(1);
  // The hash must be equal in all releases. A collision harms only the user who causes it.
  const uint64_t hash = fnv1a(directory);
  char text[9];
  std::snprintf(text, sizeof text, "%08x", unsigned(hash ^ (hash >> 32)));
  return std::string(id) + "." + text;
}

Cgroup Cgroup::named(const std::string& name, const CgroupLayout& layout) {
  Cgroup group;
  group.name_ = name;
  group.layout_ = &layout;
  for (const auto& hierarchy : layout.hierarchies) {
    if (!is_one_of_ours(hierarchy)) continue;
    group.directories_.push_back(directory_in(hierarchy, name));
    group.entrances_.push_back(group.directories_.back() +
                               (hierarchy.unified ? "/cgroup.procs" : "/tasks"));
  }
  return group;
}

std::string Cgroup::directory(std::string_view controller) const {
  return directory_of(*layout_, controller, name_);
}

Result<std::vector<CgroupStep>> plan_cgroup(const CgroupLayout& layout, const std::string& name,
                                            const CgroupLimits& limits, double machine_cpus,
                                            const std::vector<std::string>& device_rules) {
  using What = CgroupStep::What;
  const auto missing = [&](std::string_view controller) -> Result<void> {
    if (layout.with(controller)) return ok();
    return denied("limiting a job's share: this machine has no cgroup controller '" +
                  std::string(controller) + "'; boot with it enabled");
  };
  if (limits.cpus > 0) TRY(missing("cpu"));
  if (limits.memory_bytes > 0) TRY(missing("memory"));
  if (limits.pids_max > 0) TRY(missing("pids"));
  std::vector<CgroupStep> steps;
  for (const auto& hierarchy : layout.hierarchies) {
    if (!is_one_of_ours(hierarchy)) continue;
    const std::string path = directory_in(hierarchy, name);
    if (hierarchy.unified) {
      const std::string parent = path.substr(0, path.rfind('/'));
      steps.push_back({What::make, parent});
      // From the top down, because a group has only the controllers that its parent enables.
      for (const char* controller : {"+cpu", "+memory", "+pids"}) {
        if (!layout.with(controller + 1)) continue;
        steps.push_back(
            {What::write, hierarchy.path + hierarchy.base + "/cgroup.subtree_control", controller});
        steps.push_back({What::write, parent + "/cgroup.subtree_control", controller});
      }
    }
    steps.push_back({What::make, path});
  }
  const std::string bytes = std::to_string(limits.memory_bytes),
                    pids = std::to_string(limits.pids_max);
  const std::string cpu = directory_of(layout, "cpu", name),
                    memory = directory_of(layout, "memory", name);
  if (layout.mode == CgroupMode::v2) {
    if (!cpu.empty())
      weigh(steps, cpu, limits.cpus, machine_cpus, "/cpu.weight", kWeightOfCpu, kWeightMax);
    if (limits.memory_bytes > 0) {
      steps.push_back({What::write, memory + "/memory.max", bytes});
      steps.push_back({What::write_if_exists, memory + "/memory.swap.max", "0"});
    }
  } else {
    if (!cpu.empty())
      weigh(steps, cpu, limits.cpus, machine_cpus, "/cpu.shares", kSharesOfCpu, kSharesMax);
    if (limits.memory_bytes > 0) {
      steps.push_back({What::write, memory + "/memory.limit_in_bytes", bytes});
      steps.push_back({What::write_if_exists, memory + "/memory.memsw.limit_in_bytes", bytes});
    }
  }
  if (limits.pids_max > 0)
    steps.push_back({What::write, directory_of(layout, "pids", name) + "/pids.max", pids});
  if (layout.mode != CgroupMode::v2 && layout.with("devices")) {
    const std::string devices = directory_of(layout, "devices", name);
    steps.push_back({What::write, devices + "/devices.deny", "a"});
    for (const auto& rule : device_rules)
      steps.push_back({What::write, devices + "/devices.allow", rule});
  }
  return steps;
}

std::vector<CgroupStep> plan_cpu_limit(const CgroupLayout& layout, const std::string& name,
                                       double cpus) {
  const std::string path = directory_of(layout, "cpu", name);
  if (cpus <= 0 || path.empty()) return {};
  const std::string quota = std::to_string(std::llround(cpus * kCpuPeriodMicroseconds));
  const std::string period = std::to_string(kCpuPeriodMicroseconds);
  if (layout.mode == CgroupMode::v2)
    return {{CgroupStep::What::write, path + "/cpu.max", quota + " " + period}};
  return {{CgroupStep::What::write, path + "/cpu.cfs_period_us", period},
          {CgroupStep::What::write, path + "/cpu.cfs_quota_us", quota}};
}

Result<Cgroup> Cgroup::make(const std::string& name, const CgroupLimits& limits,
                            const CgroupLayout& layout) {
  const auto rules = TRY(device_rules(limits.devices));
  for (const auto& step : TRY(plan_cgroup(layout, name, limits, cpus_of_machine(), rules)))
    TRY(carry_out(step));
  return named(name, layout);
}

Result<void> Cgroup::limit_cpus(double cpus) const {
  for (const auto& step : plan_cpu_limit(*layout_, name_, cpus)) TRY(carry_out(step));
  return ok();
}

std::vector<std::string> Cgroup::names() {
  std::vector<std::string> all;
  for (const auto& hierarchy : cgroup_layout().hierarchies) {
    const std::string parent = hierarchy.path + hierarchy.base + "/" + std::string(kParent);
    DIR* const directory = ::opendir(parent.c_str());
    if (directory == nullptr) continue;
    while (const dirent* entry = ::readdir(directory))
      if (entry->d_type == DT_DIR && entry->d_name[0] != '.') all.emplace_back(entry->d_name);
    ::closedir(directory);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool Cgroup::exists() const {
  return std::any_of(directories_.begin(), directories_.end(),
                     [](const auto& path) { return os::exists(path); });
}

std::vector<int> Cgroup::processes() const {
  std::vector<int> all;
  for (const auto& path : directories_) {
    const auto text = os::read_file(path + "/cgroup.procs", kProcessListBytesMax);
    if (!text) continue;
    for (const auto line : split(*text, '\n'))
      if (const auto number = parse_int(line)) all.push_back(int(*number));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  // A process of another PID namespace is listed as 0.
  std::erase(all, 0);
  return all;
}

bool Cgroup::out_of_memory() const {
  if (directory("memory").empty()) return false;
  if (layout_->mode == CgroupMode::v2)
    return read_member(directory("memory") + "/memory.events", "oom_kill").value_or(0) > 0;
  return read_member(directory("memory") + "/memory.oom_control", "oom_kill").value_or(0) > 0;
}

std::optional<std::chrono::nanoseconds> Cgroup::cpu_used() const {
  if (directory(layout_->mode == CgroupMode::v2 ? "cpu" : "cpuacct").empty()) return {};
  if (layout_->mode == CgroupMode::v2) {
    const auto microseconds = read_member(directory("cpu") + "/cpu.stat", "usage_usec");
    if (!microseconds) return {};
    return std::chrono::microseconds(*microseconds);
  }
  const auto nanoseconds = os::read_number(directory("cpuacct") + "/cpuacct.usage");
  if (!nanoseconds) return {};
  return std::chrono::nanoseconds(*nanoseconds);
}

std::optional<int64_t> Cgroup::memory_used() const {
  const bool unified = layout_->mode == CgroupMode::v2;
  const std::string path = directory("memory");
  if (path.empty()) return {};
  const auto all = os::read_number(path + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!all) return {};
  const auto cache =
      read_member(path + "/memory.stat", unified ? "inactive_file" : "total_inactive_file");
  return std::max<int64_t>(0, *all - cache.value_or(0));
}

Result<void> Cgroup::kill(Duration at_most) const {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  const bool unified = layout_->mode == CgroupMode::v2;
  const std::string freezer = unified ? "" : directory("freezer");
  for (bool first = true;; first = false) {
    if (processes().empty()) break;
    if (unified && write_value(directories_[0] + "/cgroup.kill", "1")) {
      // Kills all processes at once, even those that are being forked.
    } else {
      // Freezes the group, so that no process is forked after the signals, and thaws it again,
      // because frozen processes cannot die.
      const bool frozen =
          !freezer.empty() && bool(write_value(freezer + "/freezer.state", "FROZEN"));
      for (const int process : processes()) ::kill(process, SIGKILL);
      if (frozen) (void)write_value(freezer + "/freezer.state", "THAWED");
    }
    if (std::chrono::steady_clock::now() >= deadline)
      return unavailable("killing the processes of cgroup " + name_ + ": timed out");
    if (!first) std::this_thread::sleep_for(kRemovePause);
  }
  return ok();
}

Result<void> Cgroup::remove() const {
  for (const auto& path : directories_) {
    for (int attempt = 0;; attempt++) {
      if (::rmdir(path.c_str()) == 0 || errno == ENOENT) break;
      if (errno != EBUSY || attempt >= kRemoveTriesMax)
        return from_errno("removing the cgroup " + path);
      std::this_thread::sleep_for(kRemovePause);
    }
    // The parent is removed with its last child.
    (void)::rmdir(path.substr(0, path.rfind('/')).c_str());
  }
  return ok();
}

}  // namespace trainyard::containers
