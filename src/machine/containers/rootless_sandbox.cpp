#include "containers/rootless_sandbox.hpp"

#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>
#include <thread>

#include "base/log.hpp"
#include "base/text.hpp"
#include "containers/cgroup.hpp"
#include "containers/id_range.hpp"
#include "os/environment.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/process.hpp"
#include "os/process_identity.hpp"

namespace trainyard::containers {
namespace {

// the variables that mark the children of a process in a sandbox, with its directory. These names,
// and those of the directory, kHolder and kNoEgress, are older than the glossary's terms. They
// stay: a server of the next version enters the sandbox of the last one, in which jobs still run.
constexpr const char* kVariable = "TRAINYARD_ENCLOSURE";
constexpr const char* kRootsRunDirectory = "/run/trainyard";
// names below the directory of the sandbox
constexpr const char* kLock = "/lock";
constexpr const char* kHolder = "/keeper";  // "PID START"
constexpr const char* kHolderLog = "/holder.log";
constexpr const char* kSlirpLog = "/slirp4netns.log";
constexpr const char* kRun = "/run";
constexpr const char* kNetwork = "/run/network";
constexpr const char* kNoEgress = "/run/no-way-out";  // the reason; empty if there is egress
// options of the tmpfs, which contains records of a few hundred bytes for each container, and names
constexpr const char* kRunOptions = "mode=0755,size=64m";
// a holder that ends releases the lock after a few milliseconds
constexpr std::chrono::seconds kLockWait{10};
constexpr std::chrono::milliseconds kLockPause{20};
// making namespaces takes a few milliseconds; slirp4netns is ready within a tenth of a second
constexpr int kReadyMilliseconds = 20'000;
constexpr Duration kToolMax = 10s;
// pauses before slirp4netns is started again: doubled each time, until it has run for some time
constexpr std::chrono::milliseconds kSlirpPause{100}, kSlirpPauseMax{30'000};
constexpr std::chrono::seconds kSlirpWell{60};
constexpr size_t kMessageBytesMax = 4096;
// limit of triples; the kernel accepts 340, and ordinary users have fewer
constexpr size_t kGrantsMax = 32;
// the network of the egress, which is reserved for tests (RFC 2544): .2 is its router, .3 its name
// server
constexpr const char* kEgressNetwork = "198.18.255.0/24";
constexpr const char* kEgressNameServer = "198.18.255.3";
constexpr const char* kEgressLink = "tap0";

// State of this process.
bool passing = false;

std::string rootless_sandbox_directory() { return os::environment_variable(kVariable); }

Error refused_namespaces(int error_number) {
  Error error = from_errno("making a user namespace", error_number);
  error.kind = Kind::denied;
  error.message +=
      "; an ordinary user's jobs run in namespaces, and this machine does not permit this user to "
      "make them "
      "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
      "kernel.apparmor_restrict_unprivileged_userns)";
  return error;
}

Result<void> write_once(const std::string& path, std::string_view text) {
  const os::File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.descriptor(), text.data(), text.size()) != ssize_t(text.size()))
    return from_errno("writing " + path);
  return ok();
}

std::string user_name(uint32_t number) {
  const passwd* entry = ::getpwuid(number);
  return entry ? entry->pw_name : "";
}

std::vector<IdGrant> grants_of(const char* file, uint32_t user) {
  const auto text = os::read_file(file, 1 << 20);
  return text ? parse_id_grants(*text, user_name(user), user) : std::vector<IdGrant>();
}

// Sets the id maps of the user namespace of `process`, a child of this process: all ids that the
// user was granted, if the machine has the programs for it and permits them (containers of other
// runtimes may not); otherwise only the user.
Result<void> map_ids(pid_t process) {
  const uint32_t user = ::geteuid(), group = ::getegid();
  const auto users = grants_of("/etc/subuid", user), groups = grants_of("/etc/subgid", user);
  const std::string number = std::to_string(process);
  if (!users.empty() && !groups.empty() && os::on_path("newuidmap") && os::on_path("newgidmap")) {
    std::vector<std::string> of_users{"newuidmap", number}, of_groups{"newgidmap", number};
    for (auto& word : id_map_arguments(user, users)) of_users.push_back(std::move(word));
    for (auto& word : id_map_arguments(group, groups)) of_groups.push_back(std::move(word));
    auto mapped = os::run_or_fail({of_groups, {}, "", "", kToolMax});
    if (mapped) mapped = os::run_or_fail({of_users, {}, "", "", kToolMax});
    if (mapped) return ok();
    log(Level::warning, "containers", "the subordinate ids of this user cannot be used",
        {{"why", mapped.error().message}});
  }
  const std::string folder = "/proc/" + number;
  // The group map is set first; an existing map is kept.
  if (const auto there = os::read_file(folder + "/gid_map", 4096); !there || trim(*there).empty()) {
    TRY(write_once(folder + "/setgroups", "deny"));
    TRY(write_once(folder + "/gid_map", "0 " + std::to_string(group) + " 1"));
  }
  return write_once(folder + "/uid_map", "0 " + std::to_string(user) + " 1");
}

// Sets the environment of every process in the sandbox. By the latter three variables, programs for
// images detect that they are not root of the machine.
void mark_children(const std::string& directory, uint32_t user, uint32_t group) {
  ::setenv(kVariable, directory.c_str(), 1);
  ::setenv("_CONTAINERS_USERNS_CONFIGURED", "done", 1);
  ::setenv("_CONTAINERS_ROOTLESS_UID", std::to_string(user).c_str(), 1);
  ::setenv("_CONTAINERS_ROOTLESS_GID", std::to_string(group).c_str(), 1);
}

// -- the namespace holder -----------------------------------------------------------------------

Result<void> set_loopback_up() {
  const os::File socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  if (!socket || ::ioctl(socket.descriptor(), SIOCGIFFLAGS, &request) != 0)
    return from_errno("reading the flags of lo");
  request.ifr_flags = short(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.descriptor(), SIOCSIFFLAGS, &request) != 0) return from_errno("setting lo up");
  return ok();
}

Result<void> make_network_of_bridges(const std::string& path) {
  TRY(os::write_file(path, "", 0600));
  Result<void> made = ok();
  std::thread([&] {
    made = [&]() -> Result<void> {
      if (::unshare(CLONE_NEWNET) != 0) return from_errno("making a network namespace");
      TRY(set_loopback_up());
      if (::mount("/proc/thread-self/ns/net", path.c_str(), nullptr, MS_BIND, nullptr) != 0)
        return from_errno("keeping a network namespace at " + path);
      return ok();
    }();
  }).join();
  return made;
}

// Starts slirp4netns, a child that ends with the calling thread, and waits until it is ready.
Result<pid_t> start_slirp(const std::string& network, const std::string& log_file,
                          const std::vector<std::string>& more) {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) return from_errno("making a pipe");
  const os::File reading(ready[0]);
  os::File writing(ready[1]);
  const os::File log(::open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const os::File null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> words = {"slirp4netns",
                                    "--configure",
                                    "--mtu=65520",
                                    std::string("--cidr=") + kEgressNetwork,
                                    "--disable-host-loopback",
                                    "--ready-fd=" + std::to_string(writing.descriptor()),
                                    "--netns-type=path"};
  words.insert(words.end(), more.begin(), more.end());
  words.push_back(network);
  words.emplace_back(kEgressLink);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return from_errno("starting slirp4netns");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // slirp4netns changes its root and unmounts the old one, which must not affect this process.
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      ::_exit(126);
    (void)::dup2(null.descriptor(), 0);
    (void)::dup2(log.descriptor(), 1);
    (void)::dup2(log.descriptor(), 2);
    (void)::fcntl(writing.descriptor(), F_SETFD, 0);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  writing.close();
  pollfd said{reading.descriptor(), POLLIN, 0};
  char byte = 0;
  if (::poll(&said, 1, kReadyMilliseconds / 4) > 0 && ::read(reading.descriptor(), &byte, 1) == 1)
    return child;
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const auto text = os::read_file(log_file, kMessageBytesMax);
  return internal("slirp4netns fails: " +
                  (text ? to_utf8(shorten(trim(*text), 300)) : "no output"));
}

// Starts the egress and returns its process. Errors: the reason why there is none.
Result<pid_t> start_egress(const std::string& network, const std::string& log_file) {
  if (!os::on_path("slirp4netns"))
    return not_found("slirp4netns is not on PATH (install the package slirp4netns)");
  if (const os::File device(::open("/dev/net/tun", O_RDWR | O_CLOEXEC)); !device)
    return denied(std::string("/dev/net/tun cannot be opened: ") + ::strerror(errno));
  // slirp4netns confines itself, if the machine permits it.
  if (auto confined = start_slirp(network, log_file, {"--enable-sandbox", "--enable-seccomp"}))
    return confined;
  return start_slirp(network, log_file, {});
}

// Waits until slirp4netns ends. Returns how it ended.
std::string await_slirp(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? "was killed by signal " + std::to_string(WTERMSIG(status))
                             : "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

// Runs until the holder ends: starts slirp4netns if it does not run (process 0: it has never run),
// and again whenever it has ended. While it is not ready, a file has the reason why jobs have no
// egress.
[[noreturn]] void supervise_egress(const std::string& directory, pid_t process) {
  auto pause = kSlirpPause;
  std::string logged;  // the last logged reason, so that each is logged once
  for (;;) {
    if (process != 0) {
      const auto began = std::chrono::steady_clock::now();
      const std::string ended = await_slirp(process);
      if (std::chrono::steady_clock::now() - began >= kSlirpWell) pause = kSlirpPause;
      log(Level::warning, "containers",
          "slirp4netns, the egress of jobs, has ended and is started again",
          {{"why", ended}, {"after_milliseconds", std::to_string(pause.count())}});
      (void)os::write_file(directory + kNoEgress, "slirp4netns " + ended + ", and is started again",
                           0600);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kSlirpPauseMax);
    const auto started = start_egress(directory + kNetwork, directory + kSlirpLog);
    const std::string why = started ? "" : started.error().message;
    (void)os::write_file(directory + kNoEgress, why, 0600);
    if (!started && why != logged)
      log(Level::warning, "containers", "slirp4netns, the egress of jobs, could not be started",
          {{"why", why}});
    logged = why;
    process = started ? *started : 0;
  }
}

// Prepares the sandbox, and returns the process of the egress; 0: there is none, and a file has the
// reason.
Result<pid_t> prepare_rootless_sandbox(const std::string& directory) {
  if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0)
    return from_errno("becoming root of the rootless sandbox");
  // Makes mounts and unmounts of the machine propagate into the sandbox, and from there to its
  // namespaces.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0)
    return from_errno("making a mount namespace");
  const std::string run = directory + kRun;
  TRY(os::make_directories(run, 0755));
  if (::mount("tmpfs", run.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, kRunOptions) != 0)
    return from_errno("mounting a tmpfs at " + run);
  if (::mount(nullptr, run.c_str(), nullptr, MS_SHARED, nullptr) != 0)
    return from_errno("sharing " + run);
  TRY(make_network_of_bridges(directory + kNetwork));
  const auto egress = start_egress(directory + kNetwork, directory + kSlirpLog);
  TRY(os::write_file(directory + kNoEgress, egress ? "" : egress.error().message, 0600));
  const auto ours = os::identify(::getpid());
  if (!ours) return internal("starting the namespace holder: it is not in /proc");
  const std::string temporary = directory + kHolder + ".new";
  TRY(os::write_file(temporary, std::to_string(ours->process) + " " + std::to_string(ours->started),
                     0600));
  if (::rename(temporary.c_str(), (directory + kHolder).c_str()) != 0)
    return from_errno("writing " + directory + kHolder);
  return egress ? *egress : 0;
}

// Runs the holder. It sends two messages to the process that made it, each with a zero byte at its
// end and empty on success: the first when its ids can be mapped, the second when it is ready.
[[noreturn]] void run_holder(const std::string& directory, const os::File& say,
                             const os::File& hear) {
  ::setsid();
  (void)::prctl(PR_SET_NAME, "trainyard-keep");
  const auto answer = [&](const std::string& message) {
    (void)!::write(say.descriptor(), message.c_str(), message.size() + 1);
  };
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    answer(refused_namespaces(errno).message);
    ::_exit(1);
  }
  answer("");  // its ids can be mapped now
  char go = 0;
  if (::read(hear.descriptor(), &go, 1) != 1) ::_exit(1);
  const auto prepared = prepare_rootless_sandbox(directory);
  if (!prepared) {
    answer(prepared.error().message);
    ::_exit(1);
  }
  answer("");
  // Closes the descriptors that it inherited: streams and lock. Its messages are written to its
  // log.
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int own_log = ::open((directory + kHolderLog).c_str(),
                             O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  for (int stream = 0; stream < 3; stream++)
    (void)::dup2(stream == 2 && own_log >= 0 ? own_log : null, stream);
  ::syscall(SYS_close_range, 3u, ~0u, 0u);
  static os::MachineClock clock;
  set_log({}, clock, Level::info);
  const std::thread egress(supervise_egress, directory, *prepared);  // ends with this process
  const int lock = ::open((directory + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int held;
  do held = lock >= 0 ? ::flock(lock, LOCK_EX) : 0;
  while (held != 0 && errno == EINTR);
  ::unlink((directory + kHolder).c_str());
  ::_exit(0);
}

// Reads a message up to a zero byte.
Result<std::string> receive_message(const os::File& from) {
  std::string message;
  for (;;) {
    pollfd said{from.descriptor(), POLLIN, 0};
    char byte = 0;
    if (::poll(&said, 1, kReadyMilliseconds) <= 0)
      return unavailable("waiting for the sandbox's namespace holder: timed out");
    const ssize_t got = ::read(from.descriptor(), &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return unavailable("starting the sandbox's namespace holder: it ended without a message");
    if (byte == '\0') return message;
    if (message.size() < kMessageBytesMax) message += byte;
  }
}

Result<void> take_answer(const os::File& from) {
  const std::string message = TRY(receive_message(from));
  if (message.empty()) return ok();
  return denied(message);
}

Result<os::ProcessIdentity> make_rootless_sandbox(const std::string& directory) {
  int to_us[2], to_holder[2];
  if (::pipe2(to_us, O_CLOEXEC) != 0) return from_errno("making a pipe");
  const os::File hear(to_us[0]);
  os::File say_there(to_us[1]);
  if (::pipe2(to_holder, O_CLOEXEC) != 0) return from_errno("making a pipe");
  os::File hear_there(to_holder[0]);
  os::File say(to_holder[1]);
  const pid_t holder = ::fork();
  if (holder < 0) return from_errno("starting the sandbox's namespace holder");
  if (holder == 0) {
    say.close();  // so that the holder detects the end of this process
    run_holder(directory, say_there, hear_there);
  }
  say_there.close();
  hear_there.close();
  const auto made = [&]() -> Result<void> {
    TRY(take_answer(hear));
    TRY(map_ids(holder));
    if (::write(say.descriptor(), "g", 1) != 1)
      return from_errno("writing to the sandbox's namespace holder");
    return take_answer(hear);
  }();
  const auto identity = os::identify(holder);
  if (made && identity) return *identity;
  ::kill(holder, SIGKILL);
  while (::waitpid(holder, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!made) return made.error();
  return unavailable("starting the sandbox's namespace holder: it ended at once");
}

std::optional<os::ProcessIdentity> find_holder(const std::string& directory) {
  const auto text = os::read_file(directory + kHolder, 64);
  if (!text) return {};
  const auto words = split(trim(*text), ' ');
  if (words.size() != 2) return {};
  const auto process = parse_int(words[0]), started = parse_int(words[1]);
  if (!process || !started) return {};
  const os::ProcessIdentity identity{pid_t(*process), uint64_t(*started)};
  if (!os::is_alive(identity)) return {};
  return identity;
}

// Takes a shared lock of the sandbox until this process ends. While a process holds it, the holder
// runs.
Result<void> hold_lock(const std::string& directory) {
  static os::File held;
  const std::string path = directory + kLock;
  held = os::File(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!held) return from_errno("opening " + path);
  const auto deadline = std::chrono::steady_clock::now() + kLockWait;
  while (::flock(held.descriptor(), LOCK_SH | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return from_errno("locking " + path);
    if (std::chrono::steady_clock::now() > deadline)
      return unavailable("entering the sandbox at " + directory +
                         ": timed out while its old namespace holder ends");
    std::this_thread::sleep_for(kLockPause);
  }
  return ok();
}

Result<void> enter_namespaces_of(const os::ProcessIdentity& holder) {
  const std::string folder = "/proc/" + std::to_string(holder.process) + "/ns/";
  const os::File users(::open((folder + "user").c_str(), O_RDONLY | O_CLOEXEC));
  const os::File mounts(::open((folder + "mnt").c_str(), O_RDONLY | O_CLOEXEC));
  if (!users || !mounts)
    return from_errno("opening the namespaces of the sandbox's namespace holder");
  if (!os::is_alive(holder))
    return unavailable("entering the sandbox: its namespace holder has ended");
  // Entering a mount namespace changes the working directory to its root.
  char here[PATH_MAX];
  const bool known = ::getcwd(here, sizeof here) != nullptr;
  if (::setns(users.descriptor(), CLONE_NEWUSER) != 0) return from_errno("entering the sandbox");
  if (::setns(mounts.descriptor(), CLONE_NEWNS) != 0)
    return from_errno("entering the sandbox's mounts");
  if (known && ::chdir(here) != 0) return from_errno(std::string("going back to ") + here);
  return ok();
}

bool has_machines_ids() {
  const auto text = os::read_file("/proc/self/uid_map", 64 << 10);
  return text && parse_own_ids(*text).whole_machine;
}

}  // namespace

std::vector<IdGrant> parse_id_grants(std::string_view text, std::string_view name,
                                     uint32_t number) {
  std::vector<IdGrant> grants;
  for (const auto line : split(text, '\n')) {
    const auto members = split(trim(line), ':');
    if (members.size() != 3 ||
        (members[0] != std::to_string(number) && (name.empty() || members[0] != name)))
      continue;
    const auto first = parse_int(members[1]), count = parse_int(members[2]);
    if (!first || !count || *first <= 0 || *count <= 0 || *first + *count > int64_t(UINT32_MAX))
      continue;
    if (grants.size() < kGrantsMax) grants.push_back({uint32_t(*first), uint32_t(*count)});
  }
  return grants;
}

std::vector<std::string> id_map_arguments(uint32_t own, const std::vector<IdGrant>& grants) {
  std::vector<std::string> words{"0", std::to_string(own), "1"};
  uint64_t next = 1;
  for (const auto& grant : grants) {
    words.push_back(std::to_string(next));
    words.push_back(std::to_string(grant.first));
    words.push_back(std::to_string(grant.count));
    next += grant.count;
  }
  return words;
}

bool is_root() { return ::geteuid() == 0; }

Result<void> enter_rootless_sandbox(const std::string& directory) {
  const uint32_t user = ::geteuid(), group = ::getegid();
  TRY(os::make_directories(directory, 0700));
  TRY(hold_lock(directory));
  auto holder = find_holder(directory);
  if (!holder)
    holder = TRY(make_rootless_sandbox(directory).in("making the namespaces of an ordinary user"));
  TRY(enter_namespaces_of(*holder));
  mark_children(directory, user, group);
  move_to_leaf_cgroup({holder->process, ::getpid()});
  return ok();
}

Result<void> enter_temporary_rootless_sandbox() {
  const uint32_t user = ::geteuid(), group = ::getegid();
  int go[2], done[2];
  if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(done, O_CLOEXEC) != 0)
    return from_errno("making a pipe");
  const os::File hear_go(go[0]), hear_done(done[0]), say_done(done[1]);
  os::File say_go(go[1]);
  const pid_t us = ::getpid();
  // A process outside of the namespace must map the ids of this process.
  const pid_t helper = ::fork();
  if (helper < 0) return from_errno("starting a process");
  if (helper == 0) {
    say_go.close();
    char byte = 0;
    std::string message;
    if (::read(hear_go.descriptor(), &byte, 1) != 1) ::_exit(0);
    if (auto mapped = map_ids(us); !mapped) message = mapped.error().message;
    (void)!::write(say_done.descriptor(), message.c_str(), message.size() + 1);
    ::_exit(0);
  }
  const auto entered = [&]() -> Result<void> {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return refused_namespaces(errno);
    if (::write(say_go.descriptor(), "g", 1) != 1) return from_errno("writing to a process");
    TRY(take_answer(hear_done));
    if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
      return from_errno("becoming root in a new user namespace");
    return ok();
  }();
  say_go.close();
  while (::waitpid(helper, nullptr, 0) < 0 && errno == EINTR) {
  }
  TRY(entered);
  mark_children("", user, group);
  passing = true;
  return ok();
}

Result<void> settle_in_rootless_sandbox() {
  const std::string directory = rootless_sandbox_directory();
  if (!in_rootless_sandbox() || directory.empty()) return ok();
  TRY(hold_lock(directory));
  // the identity of this process for processes of other namespaces
  os::remember_own_identity();
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return from_errno("mounting a new /proc");
  return ok();
}

Result<void> check_ids(uint32_t user, uint32_t group) {
  if (!in_rootless_sandbox()) return ok();
  uint32_t least = kIdsOfRange;
  for (const char* map : {"/proc/self/uid_map", "/proc/self/gid_map"})
    least = std::min(least, parse_own_ids(TRY(os::read_file(map, 64 << 10))).count);
  if (std::max(user, group) < least) return ok();
  return denied("the image's user " + std::to_string(user) + ":" + std::to_string(group) +
                " is not among the " + std::to_string(least) +
                " ids that this server has: it runs as an ordinary user, which needs the package "
                "uidmap and a line "
                "each in /etc/subuid and /etc/subgid");
}

bool in_rootless_sandbox() {
  return passing || (!rootless_sandbox_directory().empty() && !has_machines_ids());
}

std::string run_directory() {
  const std::string directory = rootless_sandbox_directory();
  return in_rootless_sandbox() && !directory.empty() ? directory + kRun : kRootsRunDirectory;
}

std::string network_of_bridges() {
  const std::string directory = rootless_sandbox_directory();
  return in_rootless_sandbox() && !directory.empty() ? directory + kNetwork : "";
}

std::string why_no_egress() {
  const std::string directory = rootless_sandbox_directory();
  if (!in_rootless_sandbox() || directory.empty()) return "";
  const auto words = os::read_file(directory + kNoEgress, kMessageBytesMax);
  return words ? *words : words.error().message;
}

std::string rootless_sandbox_name_server() {
  return in_rootless_sandbox() && why_no_egress().empty() ? kEgressNameServer : "";
}

}  // namespace trainyard::containers
