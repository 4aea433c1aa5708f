#include "containers/oci_bundle.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <set>

#include "base/text.hpp"
#include "containers/process_limits.hpp"
#include "os/mounts.hpp"

namespace trainyard::containers {
namespace {

// The memory of a tmpfs counts against the container's limit, so these limits only prevent that one
// use takes the memory of another.
constexpr uint64_t kTmpfsBytesLeast = 64 << 20;        // enough for a package cache
constexpr uint64_t kTmpfsBytesUnlimited = 1ull << 30;  // if the container has no memory limit
constexpr uint64_t kDeviceBytes = 64 << 10;            // /dev contains names only
constexpr uint64_t kTmpfsBytesPerFile =
    // files of a page and more; a file's own record takes a fourth
    4 << 10;
// enough names for a container's system, devices and mount points
constexpr uint64_t kTmpfsFilesLeast = 1024;
// makes the out-of-memory killer choose a process of the job, and not the runtime in the same
// cgroup
constexpr int kOutOfMemoryScore = 500;
// the kernel rejects less than a millisecond of each 100 ms period
constexpr double kCpusLeast = 0.01;
// the runtime itself starts inside the limit
constexpr int64_t kMemoryBytesLeast = 8 << 20;

constexpr uint32_t kTerminalGroup = 5;  // "tty" in every distribution
bool is_clean_absolute(std::string_view path) {
  if (path.empty() || path[0] != '/' || path.find('\0') != std::string_view::npos) return false;
  if (path == "/") return true;
  for (const auto part : split(path.substr(1), '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

bool lies_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

Json mount(std::string destination, std::string type, std::string source,
           std::vector<std::string> options) {
  return {{"destination", std::move(destination)},
          {"type", std::move(type)},
          {"source", std::move(source)},
          {"options", std::move(options)}};
}

std::string files_limit(uint64_t bytes) {
  return "nr_inodes=" + std::to_string(std::max(kTmpfsFilesLeast, bytes / kTmpfsBytesPerFile));
}

Json tmpfs(const std::string& destination, uint64_t bytes) {
  return mount(
      destination, "tmpfs", "tmpfs",
      {"nosuid", "nodev", "mode=1777", "size=" + std::to_string(bytes), files_limit(bytes)});
}

Json id_mappings(const IdRange& ids, const std::vector<uint32_t>& pieces) {
  Json mappings = Json::array();
  uint32_t next = 0;
  for (const uint32_t piece : pieces.empty() ? std::vector<uint32_t>{ids.count} : pieces) {
    const uint32_t count = std::min(piece, ids.count - next);
    if (count > 0)
      mappings.push_back({{"containerID", next}, {"hostID", ids.first + next}, {"size", count}});
    next += count;
  }
  return mappings;
}

Result<void> check_paths(const ContainerSpec& spec) {
  if (spec.id.empty() ||
      spec.id.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
          std::string::npos ||
      spec.id[0] == '.')
    return invalid("invalid container id '" + shorten(spec.id, 80) +
                   "': only letters, digits, '-', '_' and '.' are allowed");
  if (!is_clean_absolute(spec.directory))
    return invalid("invalid container directory '" + shorten(spec.directory, 200) +
                   "': it must be an absolute path");
  if (!spec.image_root.empty() && !is_clean_absolute(spec.image_root))
    return invalid("invalid image root '" + shorten(spec.image_root, 200) +
                   "': it must be an absolute path");
  // The options of an overlay are separated by commas, so its paths must not contain any.
  if (!spec.layer_directory.empty() && !is_clean_absolute(spec.layer_directory))
    return invalid("invalid layer directory '" + shorten(spec.layer_directory, 200) +
                   "': it must be an absolute path");
  for (const auto* path : {&spec.directory, &spec.layer_directory, &spec.image_root})
    if (path->find_first_of(",:\\") != std::string::npos)
      return invalid("invalid path " + *path + ": it must not contain ',', ':' or '\\'");
  return ok();
}

Result<void> check_process(const ContainerSpec& spec) {
  if (spec.arguments.empty() || spec.arguments[0].empty())
    return invalid("a container needs a program to run");
  if (!is_clean_absolute(spec.working_directory))
    return invalid("invalid working directory '" + shorten(spec.working_directory, 200) +
                   "' of the container: it must be an absolute path");
  if (spec.cpus != 0 && spec.cpus < kCpusLeast)
    return invalid("invalid cpus " + std::to_string(spec.cpus) +
                   " of the container: it needs at least 0.01");
  if (spec.memory_bytes != 0 && spec.memory_bytes < kMemoryBytesLeast)
    return invalid("a container needs at least " + human_bytes(kMemoryBytesLeast) + " of memory");
  for (const auto& argument : spec.arguments)
    if (argument.find('\0') != std::string::npos)
      return invalid("invalid argument: it contains a zero byte");
  for (const auto& [name, value] : spec.environment)
    if (name.empty() || name.find_first_of(std::string_view("=\0", 2)) != std::string::npos ||
        value.find('\0') != std::string::npos)
      return invalid("invalid environment variable (name or value): " + shorten(name, 80));
  for (const auto& limit : spec.limits)
    if (!resource_of(limit.name) || limit.soft > limit.hard)
      return invalid("invalid limit " + shorten(limit.name, 40) + ": " +
                     std::to_string(limit.soft) + " and " + std::to_string(limit.hard) + "");
  return ok();
}

Result<void> check_mounts(const ContainerSpec& spec, const std::vector<SystemEntry>& system) {
  for (const auto& each : spec.mounts)
    if (!is_clean_absolute(each.destination) || each.destination == "/" ||
        (!each.source.empty() && !is_clean_absolute(each.source)))
      return invalid("mounting " + each.source + " at " + each.destination +
                     ": paths must be absolute and clean");
  for (const auto& device : spec.devices)
    if (!lies_below(device, "/dev") || !is_clean_absolute(device))
      return invalid("invalid device file: " + device);
  if (!spec.image_root.empty()) return ok();
  // Rejected, because the runtime would make missing mount points on the machine itself.
  for (const auto& entry : system)
    for (const auto& wanted : spec.mounts)
      if (lies_below(wanted.destination, entry.path))
        return invalid(
            "invalid mount at " + wanted.destination + " of this machine: " + entry.path +
            (entry.kind == SystemEntry::Kind::link ? " is a link of its system"
                                                   : " is part of its read-only system"));
  return ok();
}

// Returns the bytes of the container's memory that a tmpfs may use.
uint64_t part_of_memory(const ContainerSpec& spec, uint64_t divisor) {
  const uint64_t part = spec.memory_bytes > 0
                            ? std::max(kTmpfsBytesLeast, uint64_t(spec.memory_bytes) / divisor)
                            : kTmpfsBytesUnlimited;
  // The root and /tmp share the bytes that the job may write.
  return spec.scratch_bytes_max ? std::min(part, spec.scratch_bytes_max / 2) : part;
}

}  // namespace

const std::vector<std::string>& container_capabilities() {
  // They apply only to ids and files of the user namespace: the rights that programs expect of root
  // (to change owners or to become another user, as package managers and sshd do). There are none
  // for the network, other processes' memory or the kernel. The network namespace belongs to the
  // machine, so even low ports are permitted by one of its settings instead.
  static const std::vector<std::string> names = {
      "CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FOWNER",     "CAP_FSETID",
      "CAP_KILL",    "CAP_SETGID",           "CAP_SETUID",     "CAP_SETPCAP",
      "CAP_SETFCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_AUDIT_WRITE"};
  return names;
}

const std::vector<std::string>& system_allow_list() {
  static const std::vector<std::string> list = {
      "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32",
      // Names of users, hosts and services.
      "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf",
      "/etc/services", "/etc/protocols", "/etc/networks", "/etc/rpc", "/etc/ethertypes",
      // Configuration of the dynamic linker.
      "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
      // Certificates, but never /etc/ssl/private.
      "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ca-certificates.conf",
      "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/crypto-policies",
      // Time zone, language, terminal.
      "/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf",
      "/etc/default/locale", "/etc/inputrc", "/etc/terminfo", "/etc/bash.bashrc", "/etc/bashrc",
      "/etc/profile", "/etc/profile.d", "/etc/skel",
      // Descriptions of the system that programs read.
      "/etc/os-release", "/etc/debian_version", "/etc/lsb-release", "/etc/mime.types", "/etc/magic",
      "/etc/fonts", "/etc/python3", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13",
      "/etc/matplotlibrc", "/etc/perl", "/etc/R", "/etc/openmpi", "/etc/openmpi-mca-params.conf",
      "/etc/libibverbs.d", "/etc/OpenCL", "/etc/vulkan", "/etc/nvidia"};
  return list;
}

std::vector<SystemEntry> system_entries() {
  std::vector<SystemEntry> entries;
  for (const auto& path : system_allow_list()) {
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) continue;
    SystemEntry entry{path, SystemEntry::Kind::directory, ""};
    if (S_ISLNK(status.st_mode)) {
      char target[PATH_MAX];
      const ssize_t length = ::readlink(path.c_str(), target, sizeof target);
      if (length <= 0 || size_t(length) == sizeof target) continue;
      entry.kind = SystemEntry::Kind::link;
      entry.target.assign(target, size_t(length));
    } else if (S_ISREG(status.st_mode)) {
      entry.kind = SystemEntry::Kind::file;
    } else if (!S_ISDIR(status.st_mode)) {
      continue;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<RootStep> root_steps(const std::vector<SystemEntry>& system) {
  std::vector<RootStep> steps;
  std::set<std::string> made;
  const auto directory = [&](const std::string& path, unsigned mode) {
    if (made.insert(path).second) steps.push_back({RootStep::Kind::directory, path, "", mode});
  };
  for (const char* path : {"etc", "dev", "proc", "sys", "run", "var", "opt", "home", "mnt", "srv"})
    directory(path, 0755);
  directory("root", 0700);
  directory("tmp", 01777);
  directory("var/tmp", 01777);
  for (const char* path : {"var/lib", "var/cache", "var/log", "run/lock"}) directory(path, 0755);
  for (const auto& entry : system) {
    const std::string path = entry.path.substr(1);
    for (size_t slash = path.find('/'); slash != std::string::npos;
         slash = path.find('/', slash + 1))
      directory(path.substr(0, slash), 0755);
    switch (entry.kind) {
      case SystemEntry::Kind::directory:
        directory(path, 0755);
        steps.push_back({RootStep::Kind::bind, path, entry.path});
        break;
      case SystemEntry::Kind::file:
        steps.push_back({RootStep::Kind::file, path, "", 0644});
        steps.push_back({RootStep::Kind::bind, path, entry.path});
        break;
      case SystemEntry::Kind::link:
        steps.push_back({RootStep::Kind::link, path, entry.target});
        break;
    }
  }
  steps.push_back({RootStep::Kind::link, "var/run", "../run"});
  steps.push_back({RootStep::Kind::link, "etc/mtab", "../proc/self/mounts"});
  return steps;
}

std::vector<Mount> with_mounts_below(const std::vector<Mount>& mounts, std::string_view mountinfo) {
  std::vector<Mount> all;
  for (const auto& each : mounts) {
    all.push_back(each);
    if (each.source.empty()) continue;
    auto below = os::mounts_below(mountinfo, each.source);
    // In the order in which they were mounted; a mount that is hidden by another is included once.
    std::reverse(below.begin(), below.end());
    std::set<std::string> seen;
    for (const auto& path : below) {
      if (path == each.source || !seen.insert(path).second) continue;
      const std::string suffix = path.substr(each.source == "/" ? 0 : each.source.size());
      all.push_back({path, each.destination + suffix, each.read_only, 0, each.identity});
    }
  }
  return all;
}

std::string tmpfs_limits(uint64_t bytes) {
  return "size=" + std::to_string(bytes) + "," + files_limit(bytes);
}

namespace {

Json mounts_of(const ContainerSpec& spec, const Stage& stage, const std::optional<IdRange>& ids) {
  const auto replaced = [&](std::string_view destination) {
    return std::any_of(spec.mounts.begin(), spec.mounts.end(),
                       [&](const Mount& m) { return m.destination == destination; });
  };
  Json mounts = Json::array();
  mounts.push_back(mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}));
  mounts.push_back(mount("/dev", "tmpfs", "tmpfs",
                         {"nosuid", "noexec", "mode=755", "size=" + std::to_string(kDeviceBytes),
                          files_limit(kDeviceBytes)}));
  // Terminals get the group tty, if the container has this id.
  std::vector<std::string> terminals = {"nosuid", "noexec", "newinstance", "ptmxmode=0666",
                                        "mode=0620"};
  if (ids && ids->count > kTerminalGroup)
    terminals.push_back("gid=" + std::to_string(kTerminalGroup));
  mounts.push_back(mount("/dev/pts", "devpts", "devpts", terminals));
  mounts.push_back(mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}));
  if (!replaced("/dev/shm")) mounts.push_back(tmpfs("/dev/shm", spec.shared_memory_bytes));
  if (spec.network_namespace.empty())
    mounts.push_back(mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"}));
  else
    mounts.push_back(mount("/sys", "none", stage.sys(), {"bind"}));
  if (!replaced("/tmp")) mounts.push_back(tmpfs("/tmp", part_of_memory(spec, 2)));
  // Staged mounts have their options already.
  for (size_t i = 0; i < spec.mounts.size(); i++) {
    const Mount& each = spec.mounts[i];
    mounts.push_back(
        each.source.empty()
            ? tmpfs(each.destination, each.tmpfs_bytes ? each.tmpfs_bytes : kTmpfsBytesLeast)
            : mount(each.destination, "none", stage.mount(i),
                    {ids && !ids->shifted() ? "rbind" : "bind", "rprivate"}));
  }
  for (size_t i = 0; i < spec.devices.size(); i++)
    mounts.push_back(mount(spec.devices[i], "none", stage.device(i), {"bind"}));
  return mounts;
}

Json process_of(const ContainerSpec& spec, bool user_namespace) {
  Json environment = Json::array();
  for (const auto& [name, value] : spec.environment) environment.push_back(name + "=" + value);
  if (!spec.environment.contains("PATH"))
    environment.push_back("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");

  const Json none = Json::array();
  Json limits = none;
  if (spec.pids_max_by_user)
    limits.push_back({{"type", "RLIMIT_NPROC"}, {"hard", spec.pids_max}, {"soft", spec.pids_max}});
  for (const auto& limit : spec.limits)
    limits.push_back(
        {{"type", "RLIMIT_" + to_upper(limit.name)}, {"hard", limit.hard}, {"soft", limit.soft}});
  const Json given = user_namespace ? Json(container_capabilities()) : none;
  // As with other runtimes, users other than root have no capabilities at first.
  const Json effective = spec.user_id == 0 ? given : none;
  return {{"terminal", false},
          {"user", {{"uid", spec.user_id}, {"gid", spec.group_id}}},
          {"args", spec.arguments},
          {"env", environment},
          {"cwd", spec.working_directory},
          {"capabilities",
           {{"bounding", given},
            {"effective", effective},
            {"inheritable", none},
            {"permitted", effective},
            {"ambient", none}}},
          // The machine may forbid raising limits, so limits that were not requested are inherited.
          {"rlimits", limits},
          {"noNewPrivileges", true},
          {"oomScoreAdj", kOutOfMemoryScore}};
}

Json linux_of(const ContainerSpec& spec, const std::optional<IdRange>& ids, const Json& filter) {
  Json namespaces =
      Json::array({{{"type", "mount"}}, {{"type", "uts"}}, {{"type", "pid"}}, {{"type", "ipc"}}});
  if (spec.network_namespace.empty()) namespaces.push_back({{"type", "network"}});
  if (ids) namespaces.push_back({{"type", "user"}});
  Json linux_part = {
      {"namespaces", namespaces},
      {"rootfsPropagation", "private"},
      {"seccomp", filter},
      {"maskedPaths",
       {"/proc/acpi",
        "/proc/asound",
        "/proc/kcore",
        "/proc/keys",
        "/proc/key-users",
        "/proc/latency_stats",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/pressure",
        "/proc/kallsyms",
        "/proc/kmsg",
        "/proc/vmallocinfo",
        "/proc/config.gz",
        "/sys/firmware",
        "/sys/kernel",
        "/sys/fs",
        "/sys/devices/virtual/powercap",
        "/sys/module"}},
      {"readonlyPaths",
       {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/driver"}}};
  if (ids) {
    linux_part["uidMappings"] = id_mappings(*ids, ids->user_pieces);
    linux_part["gidMappings"] = id_mappings(*ids, ids->group_pieces);
  }
  return linux_part;
}

}  // namespace

Result<void> check_container(const ContainerSpec& spec, const std::vector<SystemEntry>& system) {
  TRY(check_paths(spec));
  TRY(check_process(spec));
  return check_mounts(spec, system);
}

Bundle make_bundle(const ContainerSpec& spec, const std::vector<SystemEntry>& system,
                   const Stage& stage, const std::optional<IdRange>& ids, const Json& filter) {
  Bundle bundle;
  bundle.root_bytes = part_of_memory(spec, 4);
  if (spec.image_root.empty()) bundle.root = root_steps(system);
  bundle.config = {{"ociVersion", "1.0.2"},
                   {"process", process_of(spec, ids.has_value())},
                   {"root", {{"path", stage.root()}, {"readonly", spec.read_only_root}}},
                   {"hostname", spec.hostname},
                   {"mounts", mounts_of(spec, stage, ids)},
                   {"linux", linux_of(spec, ids, filter)}};
  if (spec.hostname.empty()) bundle.config.erase("hostname");
  return bundle;
}

}  // namespace trainyard::containers
