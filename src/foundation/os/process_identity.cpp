#include "os/process_identity.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::os {
namespace {

// execve accepts at most 6 MiB of arguments and environment; usual environments are far smaller.
constexpr size_t kEnvironmentBytesMax = 8 << 20;
constexpr size_t kStatusBytesMax = 4096;
constexpr size_t kCgroupsBytesMax = 64 << 10;
// retries for a process whose environment is empty, and the pause between them
constexpr int kExecTriesMax = 5;
constexpr Duration kExecPause = 2ms;

std::optional<ProcessIdentity> remembered_identity;  // set before other threads start

struct Status {
  ProcessIdentity identity;
  int64_t session = -1;
};

// Returns nullopt if it cannot be read.
std::optional<std::pair<dev_t, ino_t>> user_namespace_of(const std::string& process) {
  struct stat status;
  if (::stat(("/proc/" + process + "/ns/user").c_str(), &status) != 0) return {};
  return std::pair(status.st_dev, status.st_ino);
}

// Returns true for processes of containers (containers/cgroup.hpp), even if these have no user
// namespace.
bool is_in_container(pid_t process) {
  const auto groups = read_file("/proc/" + std::to_string(process) + "/cgroup", kCgroupsBytesMax);
  return groups && groups->find("/trainyard/") != std::string::npos;
}

// Returns nullopt if the process does not exist or is a zombie.
std::optional<Status> status_of(pid_t process) {
  const auto text = read_file("/proc/" + std::to_string(process) + "/stat", kStatusBytesMax);
  if (!text) return {};
  // "PID (name) STATE PPID ..": the name may contain any character, even ')'. The session is field
  // 6, the start time field 22.
  const size_t end = text->rfind(')');
  if (end == std::string::npos) return {};
  const auto members = split(std::string_view(*text).substr(end + 1), ' ');
  constexpr size_t kState = 1, kSession = 4, kStarted = 20;
  if (members.size() <= kStarted || members[kState] == "Z" || members[kState] == "X") return {};
  const auto started = parse_int(members[kStarted]), session = parse_int(members[kSession]);
  if (!started || !session) return {};
  return Status{{process, uint64_t(*started)}, *session};
}

}  // namespace

std::optional<ProcessIdentity> identify(pid_t process) {
  const auto status = status_of(process);
  return status ? std::optional(status->identity) : std::nullopt;
}

bool leads_session(const ProcessIdentity& identity) {
  const auto status = status_of(identity.process);
  return status && status->identity == identity && status->session == identity.process;
}

std::optional<ProcessIdentity> own_identity() {
  if (remembered_identity) return remembered_identity;
  char text[32] = {};
  if (::readlink("/proc/self", text, sizeof text - 1) <= 0) return {};
  const auto number = parse_int(text);
  return number ? identify(pid_t(*number)) : std::nullopt;
}

void remember_own_identity() { remembered_identity = own_identity(); }

bool is_alive(const ProcessIdentity& identity) { return identify(identity.process) == identity; }

ProcessWatch::ProcessWatch(const ProcessIdentity& identity) : identity_(identity) {
  if (identity.process <= 0) return;
  File process(int(::syscall(SYS_pidfd_open, identity.process, 0)));
  // The process of an open descriptor can no longer change its identity.
  if (process && os::is_alive(identity)) process_ = std::make_shared<File>(std::move(process));
}

bool ProcessWatch::is_alive() const {
  if (!process_) return os::is_alive(identity_);
  pollfd ended{process_->descriptor(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 0;
}

Result<void> kill_and_wait(const ProcessIdentity& identity, Duration at_most) {
  const File process(int(::syscall(SYS_pidfd_open, identity.process, 0)));
  if (!process && errno == ESRCH) return ok();
  if (!process) return from_errno("opening process " + std::to_string(identity.process));
  // The process of an open descriptor can no longer change its identity.
  if (!is_alive(identity)) return ok();
  if (::syscall(SYS_pidfd_send_signal, process.descriptor(), SIGKILL, nullptr, 0) != 0 &&
      errno != ESRCH)
    return from_errno("killing process " + std::to_string(identity.process));
  pollfd gone{process.descriptor(), POLLIN, 0};
  int ready;
  do ready = ::poll(&gone, 1, int(at_most.count()));
  while (ready < 0 && errno == EINTR);
  if (ready > 0) return ok();
  return unavailable("killing process " + std::to_string(identity.process) + ": timed out");
}

std::vector<MarkedProcess> find_marked(const std::string& variable) {
  const std::string start = variable + "=";
  // Jobs choose the environment of their processes, which have another user namespace, or at least
  // a container's cgroup; unless this process is in a container itself.
  const auto ours = user_namespace_of("self");
  const bool contained = is_in_container(::getpid());
  std::vector<MarkedProcess> found;
  std::vector<ProcessIdentity> to_query;
  if (const auto names = list_directory("/proc"))
    for (const auto& name : *names) {
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto process = parse_int(name);
      if (!process || *process == ::getpid()) continue;
      if (ours && user_namespace_of(name) != ours) continue;
      if (const auto identity = identify(pid_t(*process))) to_query.push_back(*identity);
    }
  for (int tries = 0; !to_query.empty() && tries < kExecTriesMax; tries++) {
    if (tries > 0) std::this_thread::sleep_for(kExecPause);
    std::vector<ProcessIdentity> in_exec;
    for (const auto& identity : to_query) {
      const std::string folder = "/proc/" + std::to_string(identity.process);
      const auto environment = read_file(folder + "/environ", kEnvironmentBytesMax);
      if (!environment) continue;
      // During exec a process has no environment for a moment; kernel threads never have one.
      if (environment->empty() && exists(folder + "/exe")) in_exec.push_back(identity);
      for (const auto line : split(*environment, '\0')) {
        if (!line.starts_with(start)) continue;
        if (!contained && is_in_container(identity.process)) break;
        found.push_back({identity, std::string(line.substr(start.size()))});
        break;
      }
    }
    to_query = std::move(in_exec);
  }
  return found;
}

}  // namespace trainyard::os
