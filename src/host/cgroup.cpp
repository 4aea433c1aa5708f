#include "host/cgroup.hpp"

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

#include "base/text.hpp"
#include "host/files.hpp"
#include "host/mounts.hpp"

namespace trainyard::host {
namespace {

constexpr std::string_view kParent = "trainyard";
constexpr int kCpuPeriodMicroseconds = 100'000;  // the kernel's default
// What the kernel gives a process, or a group, that nobody weighed; and the most it takes. v1, then v2.
constexpr double kSharesOfCpu = 1024, kSharesMax = 262'144;
constexpr double kWeightOfCpu = 100, kWeightMax = 10'000;
// What a group of ours is in, of v1's hierarchies. cpuacct counts, freezer holds forks still while they are
// killed.
constexpr std::string_view kControllers[] = {"cpu", "cpuacct", "memory", "pids", "devices", "freezer"};
// Reading a group's list of processes; more than pids_max lines never come.
constexpr size_t kListBytesMax = 16 << 20;
// rmdir answers EBUSY for a moment after the last process is gone.
constexpr int kRemoveTriesMax = 500;
constexpr std::chrono::milliseconds kRemovePause{2};
// How often the parent may vanish while a group is made below it.
constexpr int kMakeTriesMax = 100;

Result<void> write_value(const std::string& path, std::string_view value) {
  const File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return from_errno("opening " + path);
  if (::write(file.descriptor(), value.data(), value.size()) != ssize_t(value.size()))
    return from_errno("writing '" + std::string(value) + "' to " + path);
  return ok();
}

std::optional<int64_t> read_number(const std::string& path) {
  const auto text = read_file(path, 4096);
  if (!text) return {};
  const auto number = parse_int(trim(*text));
  return number ? std::optional(*number) : std::nullopt;
}

// The number after `name` in a file of "name number" lines.
std::optional<int64_t> read_member(const std::string& path, std::string_view name) {
  const auto text = read_file(path, 64 << 10);
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

// Another container's end may take the empty parent away at any moment.
Result<void> make_below_parent(const std::string& parent, const std::string& path) {
  for (int attempt = 0;; attempt++) {
    TRY(make_directory(parent));
    auto made = make_directory(path);
    if (made || made.error().kind != Kind::not_found || attempt >= kMakeTriesMax) return made;
  }
}

Result<void> limit_v1_devices(const std::string& directory, const std::vector<std::string>& devices) {
  TRY(write_value(directory + "/devices.deny", "a"));
  // Making nodes is harmless without the right to make them; null, zero, full, random, urandom, tty, console,
  // ptmx, pts.
  std::vector<std::string> allowed = {"c *:* m",   "b *:* m",   "c 1:3 rwm",  "c 1:5 rwm",
                                      "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm",  "c 5:0 rwm",
                                      "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm"};
  for (const auto& path : devices) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) return from_errno("looking at the device " + path);
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) return invalid(path + " is not a device file");
    allowed.push_back(std::string(S_ISCHR(status.st_mode) ? "c " : "b ") +
                      std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev)) +
                      " rwm");
  }
  for (const auto& rule : allowed) TRY(write_value(directory + "/devices.allow", rule));
  return ok();
}

// Where cpus are short, each container counts for as many as it was given, and all of ours together for the
// whole machine; otherwise a hundred processes of ours would count as one beside any other.
void set_weights(const std::string& directory, double cpus, const char* file, double of_cpu, double most) {
  const double machine = double(std::max(1l, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const auto weight = [&](double count) {
    return std::to_string(std::llround(std::clamp(of_cpu * count, 2.0, most)));
  };
  (void)write_value(directory.substr(0, directory.rfind('/')) + file, weight(machine));
  (void)write_value(directory + file, weight(cpus > 0 ? cpus : machine));
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
  std::string unified;
  for (const auto line : split(mountinfo, '\n')) {
    // 35 31 0:31 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    const std::string path = unescape_mount_path(before[4]);
    if (after[0] == "cgroup2") {
      if (unified.empty()) unified = path;
    } else if (after[0] == "cgroup") {
      CgroupHierarchy hierarchy{path, {}, false};
      for (const auto option : split(after[2], ','))
        if (option != "rw" && option != "ro" && !option.starts_with("name=") &&
            !option.starts_with("release_agent="))
          hierarchy.controllers.emplace_back(option);
      // The first mount of a hierarchy counts; later ones show the same.
      if (!hierarchy.controllers.empty() && !layout.with(hierarchy.controllers[0]))
        layout.hierarchies.push_back(std::move(hierarchy));
    }
  }
  if (!layout.hierarchies.empty()) {
    layout.mode = unified.empty() ? CgroupMode::v1 : CgroupMode::hybrid;
    layout.hybrid_unified = unified;
  } else if (!unified.empty()) {
    layout.mode = CgroupMode::v2;
    layout.hierarchies.push_back({unified, {}, true});
  }
  return layout;
}

const CgroupLayout& cgroup_layout() {
  static const CgroupLayout layout = [] {
    const auto mountinfo = read_file("/proc/self/mountinfo", 16 << 20);
    CgroupLayout read = mountinfo ? parse_cgroup_layout(*mountinfo) : CgroupLayout();
    if (read.mode == CgroupMode::v2) {
      const auto offered = read_file(read.hierarchies[0].path + "/cgroup.controllers", 4096);
      if (offered)
        for (const auto name : split(trim(*offered), ' '))
          if (!name.empty()) read.hierarchies[0].controllers.emplace_back(name);
    }
    return read;
  }();
  return layout;
}

std::string cgroup_name(std::string_view id, std::string_view directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.remove_suffix(1);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: equal for ever, and nobody gains by a collision with himself
  for (const char byte : directory) hash = (hash ^ uint8_t(byte)) * 0x100000001b3;
  char text[9];
  std::snprintf(text, sizeof text, "%08x", unsigned(hash ^ (hash >> 32)));
  return std::string(id) + "." + text;
}

Cgroup Cgroup::named(const std::string& name) {
  Cgroup group;
  group.name_ = name;
  for (const auto& hierarchy : cgroup_layout().hierarchies) {
    const bool ours =
        hierarchy.unified || std::any_of(std::begin(kControllers), std::end(kControllers), [&](auto wanted) {
          return std::find(hierarchy.controllers.begin(), hierarchy.controllers.end(), wanted) !=
                 hierarchy.controllers.end();
        });
    if (!ours) continue;
    group.directories_.push_back(hierarchy.path + "/" + std::string(kParent) + "/" + name);
    group.entrances_.push_back(group.directories_.back() + (hierarchy.unified ? "/cgroup.procs" : "/tasks"));
  }
  return group;
}

std::string Cgroup::directory(std::string_view controller) const {
  const auto* hierarchy = cgroup_layout().with(controller);
  return hierarchy ? hierarchy->path + "/" + std::string(kParent) + "/" + name_ : "";
}

Result<Cgroup> Cgroup::make(const std::string& name, const CgroupLimits& limits) {
  const CgroupLayout& layout = cgroup_layout();
  const auto missing = [&](std::string_view controller) -> Result<void> {
    if (layout.with(controller)) return ok();
    return denied("this machine offers no cgroup controller '" + std::string(controller) +
                  "', so a job's share of it cannot be limited");
  };
  if (limits.cpus > 0) TRY(missing("cpu"));
  if (limits.memory_bytes > 0) TRY(missing("memory"));
  if (limits.pids_max > 0) TRY(missing("pids"));

  Cgroup group = named(name);
  const bool unified = layout.mode == CgroupMode::v2;
  for (const auto& path : group.directories_) {
    const std::string parent = path.substr(0, path.rfind('/'));
    TRY(make_below_parent(parent, unified ? parent : path));
    if (unified) {
      for (const char* controller : {"+cpu", "+memory", "+pids"}) {
        if (!layout.with(controller + 1)) continue;
        TRY(write_value(parent.substr(0, parent.rfind('/')) + "/cgroup.subtree_control", controller));
        TRY(write_value(parent + "/cgroup.subtree_control", controller));
      }
    }
    TRY(make_below_parent(parent, path));
  }
  if (unified) {
    const std::string& path = group.directories_[0];
    if (layout.with("cpu")) set_weights(path, limits.cpus, "/cpu.weight", kWeightOfCpu, kWeightMax);
    if (limits.memory_bytes > 0) {
      TRY(write_value(path + "/memory.max", std::to_string(limits.memory_bytes)));
      if (host::exists(path + "/memory.swap.max")) TRY(write_value(path + "/memory.swap.max", "0"));
    }
    if (limits.pids_max > 0) TRY(write_value(path + "/pids.max", std::to_string(limits.pids_max)));
    return group;
  }
  if (layout.with("cpu"))
    set_weights(group.directory("cpu"), limits.cpus, "/cpu.shares", kSharesOfCpu, kSharesMax);
  if (limits.memory_bytes > 0) {
    const std::string path = group.directory("memory");
    const std::string bytes = std::to_string(limits.memory_bytes);
    TRY(write_value(path + "/memory.limit_in_bytes", bytes));
    if (host::exists(path + "/memory.memsw.limit_in_bytes"))
      TRY(write_value(path + "/memory.memsw.limit_in_bytes", bytes));
  }
  if (limits.pids_max > 0)
    TRY(write_value(group.directory("pids") + "/pids.max", std::to_string(limits.pids_max)));
  if (layout.with("devices")) TRY(limit_v1_devices(group.directory("devices"), limits.devices));
  return group;
}

Result<void> Cgroup::limit_cpus(double cpus) const {
  if (cpus <= 0) return ok();
  const std::string path = directory("cpu");
  const std::string quota = std::to_string(std::llround(cpus * kCpuPeriodMicroseconds));
  const std::string period = std::to_string(kCpuPeriodMicroseconds);
  if (cgroup_layout().mode == CgroupMode::v2) return write_value(path + "/cpu.max", quota + " " + period);
  TRY(write_value(path + "/cpu.cfs_period_us", period));
  return write_value(path + "/cpu.cfs_quota_us", quota);
}

std::vector<std::string> Cgroup::names() {
  std::vector<std::string> all;
  for (const auto& hierarchy : cgroup_layout().hierarchies) {
    const std::string parent = hierarchy.path + "/" + std::string(kParent);
    const auto names = list_directory(parent);
    if (!names) continue;
    for (const auto& name : *names) {
      struct stat status;
      if (::stat((parent + "/" + name).c_str(), &status) == 0 && S_ISDIR(status.st_mode)) all.push_back(name);
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool Cgroup::exists() const {
  return std::any_of(directories_.begin(), directories_.end(),
                     [](const auto& path) { return host::exists(path); });
}

std::vector<int> Cgroup::processes() const {
  std::vector<int> all;
  for (const auto& path : directories_) {
    const auto text = read_file(path + "/cgroup.procs", kListBytesMax);
    if (!text) continue;
    for (const auto line : split(*text, '\n'))
      if (const auto number = parse_int(line)) all.push_back(int(*number));
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  // A process that is not in our PID namespace shows as 0.
  std::erase(all, 0);
  return all;
}

bool Cgroup::out_of_memory() const {
  if (cgroup_layout().mode == CgroupMode::v2)
    return read_member(directory("memory") + "/memory.events", "oom_kill").value_or(0) > 0;
  return read_member(directory("memory") + "/memory.oom_control", "oom_kill").value_or(0) > 0;
}

std::optional<std::chrono::nanoseconds> Cgroup::cpu_used() const {
  if (cgroup_layout().mode == CgroupMode::v2) {
    const auto microseconds = read_member(directory("cpu") + "/cpu.stat", "usage_usec");
    if (!microseconds) return {};
    return std::chrono::microseconds(*microseconds);
  }
  const auto nanoseconds = read_number(directory("cpuacct") + "/cpuacct.usage");
  if (!nanoseconds) return {};
  return std::chrono::nanoseconds(*nanoseconds);
}

std::optional<int64_t> Cgroup::memory_used() const {
  const bool unified = cgroup_layout().mode == CgroupMode::v2;
  const std::string path = directory("memory");
  const auto all = read_number(path + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!all) return {};
  const auto cache = read_member(path + "/memory.stat", unified ? "inactive_file" : "total_inactive_file");
  return std::max<int64_t>(0, *all - cache.value_or(0));
}

Result<void> Cgroup::kill(Duration at_most) const {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  const bool unified = cgroup_layout().mode == CgroupMode::v2;
  const std::string freezer = unified ? "" : directory("freezer");
  for (bool first = true;; first = false) {
    if (processes().empty()) break;
    if (unified && write_value(directories_[0] + "/cgroup.kill", "1")) {
      // All of it, forks included, in one stroke.
    } else {
      // Held still, so that what forks cannot run ahead of us; thawed, since what is frozen cannot die.
      const bool frozen = !freezer.empty() && bool(write_value(freezer + "/freezer.state", "FROZEN"));
      for (const int process : processes()) ::kill(process, SIGKILL);
      if (frozen) (void)write_value(freezer + "/freezer.state", "THAWED");
    }
    if (std::chrono::steady_clock::now() >= deadline)
      return unavailable("the processes of cgroup " + name_ + " do not end");
    if (!first) std::this_thread::sleep_for(kRemovePause);
  }
  return ok();
}

Result<void> Cgroup::remove() const {
  for (const auto& path : directories_) {
    for (int attempt = 0;; attempt++) {
      if (::rmdir(path.c_str()) == 0 || errno == ENOENT) break;
      if (errno != EBUSY || attempt >= kRemoveTriesMax) return from_errno("removing the cgroup " + path);
      std::this_thread::sleep_for(kRemovePause);
    }
    // The parent goes with its last child.
    (void)::rmdir(path.substr(0, path.rfind('/')).c_str());
  }
  return ok();
}

}  // namespace trainyard::host
