#include "preflight/preflight.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/text.hpp"
#include "containers/cgroup.hpp"
#include "containers/container_plan.hpp"
#include "containers/id_range.hpp"
#include "containers/rootless_sandbox.hpp"
#include "networks/tunnel.hpp"
#include "os/files.hpp"
#include "os/process.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::preflight {
namespace {

using State = Examination::State;

// with less free space, a first job with an image and a data set is likely to fill the disk
constexpr uint64_t kDiskBytesComfortable = 10ull << 30;
constexpr uint64_t kDiskBytesLeast = 1ull << 30;
constexpr Duration kToolMax = 10s;

std::optional<int64_t> machine_memory() {
  const auto text = os::read_file("/proc/meminfo", 64 << 10);
  if (!text) return {};
  for (const auto line : split(*text, '\n')) {
    if (!line.starts_with("MemTotal:")) continue;
    const auto kibibytes = parse_int(trim(line.substr(9, line.rfind(' ') - 9)));
    if (kibibytes) return *kibibytes * 1024;
  }
  return {};
}

// Returns this process's path below the hierarchy of `controller` ("": v2); "/": it is not limited.
std::string own_cgroup(std::string_view controller) {
  const auto text = os::read_file("/proc/self/cgroup", 64 << 10);
  if (!text) return "/";
  for (const auto line : split(*text, '\n')) {
    const auto members = split(line, ':');
    if (members.size() < 3) continue;
    for (const auto name : split(members[1], ','))
      if (name == controller && members[2].starts_with('/'))
        return std::string(line.substr(members[0].size() + members[1].size() + 2));
  }
  return "/";
}

// Returns the lowest limit of this process's group and its parents; nullopt: there is none.
std::optional<int64_t> own_memory_limit() {
  const auto* hierarchy = containers::machine_cgroup_layout().with("memory");
  if (!hierarchy) return {};
  const char* file = hierarchy->unified ? "/memory.max" : "/memory.limit_in_bytes";
  std::optional<int64_t> least;
  // In a container of another runtime the path is invisible; the mounted root is then this
  // process's group.
  for (std::string path = own_cgroup(hierarchy->unified ? "" : "memory");;
       path.erase(path.rfind('/'))) {
    if (path == "/") path.clear();
    const auto limit = os::read_number(hierarchy->path + path + file);
    if (limit && (!least || *limit < *least)) least = limit;
    if (path.empty()) return least;
  }
}

// Runs `work` in a child process. Returns 0 or its error number.
template <class Body>
int try_in_child(Body body) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(body() ? 0 : (errno & 0x7f ? errno & 0x7f : 1));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

std::string because(int error_number) { return std::string(": ") + ::strerror(error_number); }

Examination user() {
  if (::geteuid() != 0)
    return {"user", State::missing,
            "runs as an ordinary user without the right to make namespaces: no job can run",
            "run trainyard as root, or allow user namespaces (user.max_user_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"};
  if (!containers::in_rootless_sandbox()) return {"user", State::ok, "runs as root", ""};
  const auto map = os::read_file("/proc/self/uid_map", 64 << 10);
  const uint32_t ids = map ? containers::parse_own_ids(*map).count : 1;
  if (ids > 1)
    return {"user", State::ok,
            "runs as an ordinary user, root of " + std::to_string(ids) +
                " ids; all jobs of the server share them",
            ""};
  return {
      "user", State::limited,
      "runs as an ordinary user with one id: images whose programs chown or change their user "
      "fail, and owners of their files are lost",
      "install the package uidmap, and add a line for the user to /etc/subuid and to /etc/subgid"};
}

Examination program(const std::string& name, const char* program,
                    const std::vector<std::string>& version, const char* for_what,
                    const char* package) {
  if (!os::on_path(program))
    return {name, State::missing, std::string(program) + " is not on PATH; " + for_what,
            std::string("install the package ") + package};
  const auto said = os::run({version, {}, "", "", kToolMax});
  std::string first;
  if (said)
    first =
        std::string(trim(split(trim(said->output.empty() ? said->errors : said->output), '\n')[0]));
  return {name, State::ok, to_utf8(shorten(first.empty() ? program : first, 100)), ""};
}

Examination namespaces(const std::string& name, int flags, const char* for_what) {
  const int error = try_in_child([&] { return ::unshare(flags) == 0; });
  if (error == 0) return {name, State::ok, "can be made", ""};
  return {name, State::missing, std::string("cannot be made") + because(error) + "; " + for_what,
          "run as root, outside of containers that forbid it"};
}

// Tries the first steps of an agent of an ordinary user's server.
Examination own_processes() {
  const int error = try_in_child([] {
    if (::unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return false;
    const pid_t first = ::fork();
    if (first == 0) ::_exit(::mount("proc", "/proc", "proc", 0, nullptr) == 0 ? 0 : errno & 0x7f);
    int status = 0;
    if (first < 0 || ::waitpid(first, &status, 0) < 0) return false;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
    return errno == 0;
  });
  if (error == 0) return {"a /proc of its own", State::ok, "can be mounted", ""};
  return {"a /proc of its own", State::missing,
          "cannot be mounted" + because(error) + "; no job can run",
          "run outside of a container that hides parts of /proc, or as root"};
}

constexpr const char* kRootWithoutRights =
    "; root in containers has no rights: images whose programs chown, change their user or bring "
    "their own sshd fail";

Examination user_namespaces() {
  const int error = try_in_child([] { return ::unshare(CLONE_NEWUSER) == 0; });
  if (error == 0) return {"user namespaces", State::ok, "can be made", ""};
  return {"user namespaces", State::limited, "cannot be made" + because(error) + kRootWithoutRights,
          "sysctl kernel.unprivileged_userns_clone=1, or user.max_user_namespaces above 0"};
}

// Tries to map a mount of the data directory to a container's ids.
Examination mapped_mounts(const std::string& data_directory) {
  std::string path = data_directory;
  while (!path.empty() && !os::exists(path)) path.erase(path.rfind('/'));
  if (path.empty()) path = "/";
  const auto user_namespace = containers::make_user_namespace(
      containers::IdRange{containers::kFirstRange, containers::kIdsOfRange});
  if (!user_namespace)
    return {"mapped mounts", State::limited, "not tried: " + user_namespace.error().message, ""};
  const int descriptor = user_namespace->descriptor();
  const int error = try_in_child([&] {
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           containers::can_map(path, descriptor);
  });
  if (error == 0)
    return {"mapped mounts", State::ok, "files at " + path + " can be mapped to a container's ids",
            ""};
  return {"mapped mounts", State::limited,
          "files at " + path + " cannot be mapped" + because(error) + kRootWithoutRights,
          "keep the data directory on ext4, xfs or btrfs, with Linux 5.19 or newer"};
}

// Examines the cgroups of an ordinary user. Jobs can run without them.
Examination delegated_cgroups(const std::string& mode) {
  const containers::CgroupLayout& layout = containers::cgroup_layout();
  std::string can, cannot;
  // Without this controller, processes are limited in another way.
  for (const char* controller : {"cpu", "memory"}) {
    std::string& list = layout.with(controller) ? can : cannot;
    list += (list.empty() ? "" : ", ") + std::string(controller);
  }
  if (cannot.empty()) return {"cgroups", State::ok, mode + "; delegated to this user: " + can, ""};
  return {"cgroups", State::limited,
          mode + "; " + (can.empty() ? "none is" : "only " + can + " is") +
              " delegated to this user: a job's share of " + cannot +
              " is not enforced, and its log says so",
          layout.mode == containers::CgroupMode::v2
              ? "systemd-run --user --scope -p Delegate=yes trainyard serve; or run as root"
              : "make a group for the user in each v1 hierarchy and start trainyard in it; or run "
                "as root"};
}

Examination cgroups() {
  const containers::CgroupLayout& layout = containers::cgroup_layout();
  static constexpr const char* kModes[] = {"no cgroups", "cgroup v1",
                                           "hybrid cgroups (v1 next to a v2 hierarchy)",
                                           "cgroup v2 (tested with recorded trees only)"};
  std::string text = kModes[size_t(layout.mode)];
  if (layout.mode == containers::CgroupMode::none)
    return {"cgroups", State::missing,
            "no cgroups are mounted: a job's cpus, memory and processes cannot be limited",
            "mount cgroup2 at /sys/fs/cgroup"};
  if (containers::in_rootless_sandbox()) return delegated_cgroups(text);
  std::vector<std::string> can, cannot;
  for (const char* controller : {"cpu", "memory", "pids"})
    (layout.with(controller) ? can : cannot).push_back(controller);
  if (!can.empty()) {
    auto tried = containers::Cgroup::make("doctor." + std::to_string(::getpid()),
                                          {layout.with("cpu") ? 1.0 : 0,
                                           layout.with("memory") ? int64_t(64) << 20 : 0,
                                           layout.with("pids") ? int64_t(16) : 0,
                                           {}});
    if (tried && layout.with("cpu"))
      if (auto limited = tried->limit_cpus(1); !limited) tried = limited.error();
    (void)containers::Cgroup::named("doctor." + std::to_string(::getpid())).remove();
    if (!tried)
      return {"cgroups", State::missing,
              text + ", but groups cannot be made or limited: " + tried.error().message,
              "run as root, with /sys/fs/cgroup writable"};
  }
  text += "; can limit " + join(can, ", ");
  if (cannot.empty()) return {"cgroups", State::ok, text, ""};
  return {"cgroups", State::missing,
          text + "; not " + join(cannot, ", ") + ": jobs that request it are rejected",
          "boot with the controllers " + join(cannot, ", ") + " enabled (cgroup_enable=..)"};
}

// Tries mounts, which end with the child process.
Examination overlay() {
  const os::TemporaryDirectory directory;
  for (const char* name : {"lower", "upper", "work", "root"})
    if (!os::make_directories(directory.path() + "/" + name))
      return {"overlayfs", State::limited, "not tried: the temporary directories could not be made",
              ""};
  const std::string path = directory.path();
  const std::string options =
      "lowerdir=" + path + "/lower,upperdir=" + path + "/upper,workdir=" + path + "/work";
  const int error = try_in_child([&] {
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("overlay", (path + "/root").c_str(), "overlay", 0,
                   (options + (containers::in_rootless_sandbox() ? ",userxattr" : "")).c_str()) ==
               0;
  });
  if (error == 0)
    return {"overlayfs", State::ok, "a writable layer can be mounted over an image", ""};
  return {"overlayfs", State::limited,
          "refused" + because(error) + "; images are copied for each host instead, which is slow",
          "keep the data directory on ext4 or xfs, with Linux 5.11 or newer, or run as root"};
}

Examination firewall() {
  if (!os::on_path("nft"))
    return {"nftables", State::missing, "nft is not on PATH; without it jobs have no network",
            "install the package nftables"};
  // --check: the kernel only verifies. The check of an ordinary user runs in a temporary network
  // namespace.
  std::vector<std::string> words{"nft", "--check", "-f", "-"};
  if (containers::in_rootless_sandbox()) words.insert(words.begin(), {"unshare", "--net"});
  const auto tried =
      os::run({words,
               {},
               "table inet trainyard_doctor { chain c { type nat hook postrouting priority srcnat; "
               "masquerade; }; chain f { type filter hook forward priority filter; ct state "
               "established accept; }; }\n",
               "",
               kToolMax});
  if (tried && tried->code == 0) return {"nftables", State::ok, "filters and masquerades", ""};
  return {"nftables", State::missing,
          "the kernel rejects trainyard's rules: " +
              (tried ? shorten(std::string(trim(tried->errors)), 200) : tried.error().message),
          "a kernel with nf_tables, nft_masq, nft_ct and nft_chain_nat"};
}

// Examines chains of other programs: a packet that one of them drops is lost, even if Trainyard's
// table accepts it.
Examination foreign_forwarding() {
  const auto chain =
      os::run({{"nft", "list", "chain", "ip", "filter", "FORWARD"}, {}, "", "", kToolMax});
  const bool drops =
      chain && chain->code == 0 && chain->output.find("policy drop") != std::string::npos;
  if (!drops) return {"other firewalls", State::ok, "none drops forwarded packets", ""};
  return {"other firewalls", State::ok,
          "the chain FORWARD of 'ip filter' drops by default (Docker and ufw set that up); the "
          "server adds two rules that let "
          "jobs pass",
          ""};
}

Examination forwarding() {
  const auto now = os::read_number("/proc/sys/net/ipv4/ip_forward");
  if (now && *now == 1) return {"forwarding", State::ok, "net.ipv4.ip_forward is on", ""};
  if (::access("/proc/sys/net/ipv4/ip_forward", W_OK) == 0)
    return {"forwarding", State::ok,
            "net.ipv4.ip_forward is off; the first job that is not isolated switches it on", ""};
  return {"forwarding", State::missing,
          "net.ipv4.ip_forward is off and cannot be set from here: jobs have no egress",
          "sysctl net.ipv4.ip_forward=1"};
}

// Examines the egress of jobs, for an ordinary user.
Examination egress() {
  const char* remedy = "allow this user /dev/net/tun (udev: KERNEL==\"tun\", MODE=\"0666\")";
  if (!os::on_path("slirp4netns"))
    return {
        "egress", State::limited,
        "slirp4netns is not on PATH: jobs reach their own hosts and the API, and nothing outside",
        "install the package slirp4netns"};
  const os::File device(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (device) return {"egress", State::ok, "through slirp4netns", ""};
  return {"egress", State::limited,
          "/dev/net/tun cannot be opened" + because(errno) +
              ": jobs reach their own hosts and the API, and nothing outside",
          remedy};
}

Examination encryption() {
  const std::string missing = networks::why_no_tunnel();
  if (missing.empty())
    return {"traffic encryption", State::ok,
            "between the hosts of jobs that request it, by WireGuard", ""};
  return {"traffic encryption", State::limited,
          "jobs with EnableInterContainerTrafficEncryption are rejected", missing};
}

// Tries to make a bridge and a pair of interfaces in a temporary network namespace.
Examination bridges() {
  if (!os::on_path("ip"))
    return {"bridge, veth", State::limited, "not tried: ip is not on PATH",
            "install the package iproute2"};
  const auto tried =
      os::run({{"unshare", "--net", "sh", "-c",
                "ip link add name b0 type bridge && ip link add name v0 type veth peer name v1"},
               {},
               "",
               "",
               kToolMax});
  if (tried && tried->code == 0) return {"bridge, veth", State::ok, "can be made", ""};
  return {"bridge, veth", State::missing,
          "cannot be made: " +
              (tried ? shorten(std::string(trim(tried->errors)), 200) : tried.error().message),
          "run as root, with a kernel that has bridge and veth"};
}

Examination fuse() {
  const os::File device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device) return {"FUSE", State::ok, "/dev/fuse can be opened", ""};
  return {
      "FUSE", State::limited,
      "/dev/fuse cannot be opened" + because(errno) + "; channels are copied before scripts start",
      "modprobe fuse, and allow /dev/fuse"};
}

Examination volumes() {
  const os::File control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  const int error = errno;
  if (!control)
    return {
        "volumes", State::limited,
        "/dev/loop-control cannot be opened" + because(error) + "; VolumeSizeInGB is not enforced",
        containers::in_rootless_sandbox() ? "run as root: an ordinary user may not mount disks"
                                          : "a kernel with loop devices, and allow /dev/loop*"};
  if (!os::exists("/usr/sbin/mkfs.ext4") && !os::on_path("mkfs.ext4"))
    return {"volumes", State::limited, "mkfs.ext4 is not on PATH; VolumeSizeInGB is not enforced",
            "install the package e2fsprogs"};
  return {"volumes", State::ok, "can be given a size", ""};
}

Examination gpus() {
  const MachineCapacity capacity = machine_capacity();
  if (capacity.gpus == 0)
    return {"GPUs", State::limited, "no NVIDIA device files: jobs run on CPUs", ""};
  return {"GPUs", State::ok, std::to_string(capacity.gpus) + " NVIDIA device files", ""};
}

Examination disk(const std::string& data_directory) {
  std::string path = data_directory.empty() ? "/" : data_directory;
  struct statvfs status;
  while (::statvfs(path.c_str(), &status) != 0) {
    if (path.size() <= 1)
      return {"disk", State::limited, "cannot be examined" + because(errno), ""};
    path = path.substr(0, std::max<size_t>(path.rfind('/'), 1));
    if (path[0] != '/') path = "/";
  }
  const uint64_t free = uint64_t(status.f_bavail) * status.f_frsize;
  const std::string text = human_bytes(free) + " free at " + path;
  if (free < kDiskBytesLeast)
    return {"disk", State::missing, text, "free some space, or set --data to another disk"};
  if (free < kDiskBytesComfortable)
    return {"disk", State::limited, text + ": little for data sets and images", ""};
  return {"disk", State::ok, text, ""};
}

}  // namespace

std::vector<std::string> gpu_devices() {
  std::vector<std::string> cards, shared;
  if (const auto names = os::list_directory("/dev"))
    for (const auto& name : *names) {
      if (!name.starts_with("nvidia")) continue;
      const auto rest = std::string_view(name).substr(6);
      const bool card =
          !rest.empty() && rest.find_first_not_of("0123456789") == std::string_view::npos;
      if (card)
        cards.push_back("/dev/" + name);
      else if (name == "nvidiactl" || name == "nvidia-uvm" || name == "nvidia-uvm-tools" ||
               name == "nvidia-modeset")
        shared.push_back("/dev/" + name);
    }
  // Sorts by number: "nvidia10" is after "nvidia2".
  std::sort(cards.begin(), cards.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  cards.insert(cards.end(), shared.begin(), shared.end());
  return cards;
}

std::vector<std::string> gpu_cards() {
  auto all = gpu_devices();
  std::erase_if(all, [](const auto& device) {
    return device.find_first_of("0123456789") == std::string::npos;
  });
  return all;
}

MachineCapacity machine_capacity() {
  MachineCapacity capacity;
  utsname name;
  capacity.name = ::uname(&name) == 0 ? name.nodename : "this-machine";
  cpu_set_t set;
  CPU_ZERO(&set);
  capacity.cpus = ::sched_getaffinity(0, sizeof set, &set) == 0
                      ? CPU_COUNT(&set)
                      : double(::sysconf(_SC_NPROCESSORS_ONLN));
  capacity.memory_bytes = machine_memory().value_or(0);
  if (const auto limit = own_memory_limit(); limit && *limit > 0)
    capacity.memory_bytes = std::min(capacity.memory_bytes, *limit);
  capacity.gpus = int64_t(gpu_cards().size());
  return capacity;
}

std::vector<Examination> examine_machine(const std::string& data_directory) {
  std::vector<Examination> findings;
  findings.push_back(user());
  findings.push_back(
      program("OCI runtime", "crun", {"crun", "--version"}, "no job can run", "crun"));
  findings.push_back(namespaces(
      "namespaces", CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC, "no job can run"));
  findings.push_back(
      namespaces("network namespaces", CLONE_NEWNET, "jobs have no network of their own"));
  findings.push_back(user_namespaces());
  findings.push_back(containers::in_rootless_sandbox() ? own_processes()
                                                       : mapped_mounts(data_directory));
  findings.push_back(cgroups());
  findings.push_back(overlay());
  findings.push_back(bridges());
  findings.push_back(firewall());
  if (containers::in_rootless_sandbox()) {
    findings.push_back(egress());
  } else {
    findings.push_back(foreign_forwarding());
    findings.push_back(forwarding());
  }
  findings.push_back(encryption());
  findings.push_back(
      program("image tools", "skopeo", {"skopeo", "--version"}, "images cannot be read", "skopeo"));
  findings.push_back(
      program("image unpacking", "tar", {"tar", "--version"}, "images cannot be unpacked", "tar"));
  findings.push_back(volumes());
  findings.push_back(fuse());
  findings.push_back(gpus());
  findings.push_back(disk(data_directory));
  return findings;
}

}  // namespace trainyard::preflight
