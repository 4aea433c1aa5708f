#include "containers/exec.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "containers/cgroup.hpp"
#include "containers/container_plan.hpp"
#include "containers/rootless_sandbox.hpp"
#include "containers/runtime.hpp"
#include "containers/runtime_process.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::containers {
namespace {

constexpr size_t kConfigBytesMax = 16 << 20;
// Returns the common prefix of the names of this process's files.
constexpr const char* kProcessConfig = ".json";
constexpr const char* kProcessNumber = ".pid";
// the runtime needs about 20 ms, unless the machine is busy
constexpr std::chrono::seconds kConsoleWait{10};
constexpr int kPollMilliseconds = 20;
constexpr size_t kRuntimeMessageBytesMax = 4 << 10;  // limit of the message of a failed runtime
constexpr std::chrono::milliseconds kFinishTimeout{
    500};  // for programs that react to the end of their terminal

struct Ends {
  os::File ours_in, ours_out;      // ends of this process, to write and to read; a terminal is both
  os::File theirs_in, theirs_out;  // ends of the runtime
};

Result<Ends> make_pipes() {
  Ends ends;
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return from_errno("making a pipe");
  ends.theirs_in = os::File(in[0]), ends.ours_in = os::File(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return from_errno("making a pipe");
  ends.ours_out = os::File(out[0]), ends.theirs_out = os::File(out[1]);
  return ends;
}

// The arguments of the child, which are made before the fork, because the child may only make
// system calls.
struct Child {
  std::vector<std::string> entrances;  // files to write, to enter the container's cgroup
  std::string unmount;                 // a hierarchy that the runtime does not accept
  // the same, if it cannot be unmounted: a directory that is hidden with its siblings
  std::string hide;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int in = -1, out = -1;
  int network = -1;  // the container's network namespace
};

[[noreturn]] void become_runtime(const Child& child) {
  ::setsid();
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const auto& entrance : child.entrances) {
    const int file = ::open(entrance.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0 || ::write(file, "0", 1) != 1) ::_exit(126);
  }
  const bool own_mounts = !child.unmount.empty() || !child.hide.empty();
  if (own_mounts && (::unshare(CLONE_NEWNS) != 0 ||
                     ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0))
    ::_exit(126);
  if (!child.unmount.empty() && ::umount2(child.unmount.c_str(), MNT_DETACH) != 0) ::_exit(126);
  if (!child.hide.empty() && ::mount("tmpfs", child.hide.c_str(), "tmpfs", 0, "size=4k") != 0)
    ::_exit(126);
  // The runtime was in this network namespace when it started the container, so it recorded no
  // namespace for later processes to join.
  if (::setns(child.network, CLONE_NEWNET) != 0) ::_exit(126);
  ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
  if (::dup2(child.in, 0) < 0 || ::dup2(child.out, 1) < 0 || ::dup2(child.out, 2) < 0) ::_exit(126);
  ::execve(child.arguments[0], child.arguments.data(), child.environment.data());
  ::_exit(127);
}

class RuntimeExec final : public ExecProcess {
 public:
  RuntimeExec(pid_t process, std::string files, Ends ends, bool terminal)
      : process_(process),
        files_(std::move(files)),
        in_(std::move(ends.ours_in)),
        out_(std::move(ends.ours_out)),
        terminal_(terminal) {
    for (const os::File* file : {&in_, &out_})
      (void)::fcntl(file->descriptor(), F_SETFL, ::fcntl(file->descriptor(), F_GETFL) | O_NONBLOCK);
  }
  ~RuntimeExec() override { finish(); }

  Result<std::string> read(size_t bytes_max, Duration at_most, int wake) override {
    pollfd ready[2] = {{out_.descriptor(), POLLIN, 0}, {wake, POLLIN, 0}};
    if (bytes_max == 0) ready[0].fd = -1;
    const int count = ::poll(ready, 2, int(at_most / 1ms));
    if (count <= 0 || ready[0].revents == 0) return std::string();
    std::string bytes(bytes_max, '\0');
    const ssize_t got = ::read(out_.descriptor(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::string();
    // EIO: the other side of the terminal is closed.
    if (got <= 0) return cancelled("reading output: the process has closed it");
    bytes.resize(size_t(got));
    return bytes;
  }

  Result<size_t> write(std::string_view bytes) override {
    if (!in_) return bytes.size();
    const ssize_t written = ::write(in_.descriptor(), bytes.data(), bytes.size());
    if (written >= 0) return size_t(written);
    if (errno == EAGAIN || errno == EINTR) return size_t(0);
    return bytes.size();  // the process no longer reads, so the bytes are dropped
  }

  void end_input() override {
    if (!terminal_) in_.close();
  }

  void resize(uint32_t columns, uint32_t rows) override {
    winsize size = {};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    if (terminal_) (void)::ioctl(out_.descriptor(), TIOCSWINSZ, &size);
  }

  int finish() override {
    if (process_ <= 0) return code_;
    // The process has closed its output or was cancelled. Closes its terminal or pipes, and kills
    // it if it does not end. The runtime ends after it, and is killed if it does not.
    in_.close();
    out_.close();
    int status = 0;
    const auto begun = std::chrono::steady_clock::now();
    bool killed = false;
    while (::waitpid(process_, &status, WNOHANG) == 0) {
      const auto waited = std::chrono::steady_clock::now() - begun;
      if (waited > kFinishTimeout && !std::exchange(killed, true)) kill_inside();
      if (waited > 2 * kFinishTimeout) ::kill(process_, SIGKILL);
      (void)::poll(nullptr, 0, 10);
    }
    for (const char* name : {kProcessConfig, kProcessNumber}) ::unlink((files_ + name).c_str());
    process_ = -1;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return code_;
  }

 private:
  // Sends SIGKILL to the process in the container, if it is still a child of the runtime.
  void kill_inside() const {
    const auto text = os::read_file(files_ + kProcessNumber, 64);
    const auto number = text ? parse_int(trim(*text)) : Result<int64_t>(not_found(""));
    if (!number || *number <= 1) return;
    const auto identity = os::read_file("/proc/" + std::to_string(*number) + "/stat", 4096);
    const size_t end = identity ? identity->rfind(')') : std::string::npos;
    if (end == std::string::npos) return;
    const auto members = split(std::string_view(*identity).substr(end + 1), ' ');
    if (members.size() > 2 && members[2] == std::to_string(process_))
      ::kill(pid_t(*number), SIGKILL);
  }

  pid_t process_;
  const std::string files_;  // the common prefix of the names of its files
  os::File in_, out_;
  const bool terminal_;
  int code_ = 0;
};

// The socket on which the runtime sends the terminal that it makes. Its path is short, because
// paths of sockets are limited.
class Console {
 public:
  static Result<Console> open() {
    const std::string consoles = run_directory() + "/consoles";
    TRY(os::make_directories(consoles, 0700));
    static std::atomic<uint64_t> count{0};
    Console console;
    console.path_ = consoles + "/" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    console.socket_ = os::File(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (console.path_.size() >= sizeof address.sun_path)
      return exhausted("making a console's socket: path too long: " + console.path_);
    console.path_.copy(address.sun_path, sizeof address.sun_path - 1);
    ::unlink(console.path_.c_str());  // left by an earlier process with this number
    if (!console.socket_ ||
        ::bind(console.socket_.descriptor(), reinterpret_cast<sockaddr*>(&address),
               sizeof address) != 0 ||
        ::listen(console.socket_.descriptor(), 1) != 0)
      return from_errno("making a console's socket");
    return console;
  }
  Console(Console&&) noexcept = default;
  ~Console() {
    if (socket_) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

  // Errors: unavailable, if the runtime ends or the time is over before a terminal arrives.
  Result<os::File> take(pid_t runtime) const {
    const auto deadline = std::chrono::steady_clock::now() + kConsoleWait;
    for (;;) {
      pollfd ready{socket_.descriptor(), POLLIN, 0};
      if (::poll(&ready, 1, kPollMilliseconds) > 0) break;
      siginfo_t ended = {};
      const bool over = ::waitid(P_PID, id_t(runtime), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                        ended.si_pid != 0;
      if (over || std::chrono::steady_clock::now() > deadline)
        return unavailable("waiting for a terminal from the container runtime: it sent none");
    }
    const os::File connection(::accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return from_errno("receiving a terminal");
    char name[256];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec bytes{name, sizeof name};
    msghdr message = {};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(connection.descriptor(), &message, MSG_CMSG_CLOEXEC) < 0)
      return from_errno("receiving a terminal");
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
      return unavailable("receiving a terminal: the container runtime sent no descriptor");
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return os::File(descriptor);
  }

 private:
  Console() = default;
  std::string path_;
  os::File socket_;
};

// Checks without a cgroup that a process belongs to the container: its parent is the runtime, whose
// parent is this process.
bool is_of(const Cgroup& cgroup, int process) {
  if (cgroup.entrances().empty()) return parent_of(parent_of(process)) == ::getpid();
  const auto processes = cgroup.processes();
  return std::find(processes.begin(), processes.end(), process) != processes.end();
}

// Copies environment, rights, user and directory from the container's first process.
Result<Json> process_config_of(const ExecSpec& spec) {
  const Json config =
      TRY(parse_json(TRY(os::read_file(spec.directory + "/" + kConfigFile, kConfigBytesMax))));
  if (!config.contains("process") || !config["process"].is_object())
    return corrupt("the bundle of " + spec.id + " has no process");
  Json process_config = config["process"];
  process_config["args"] = spec.arguments;
  process_config["terminal"] = spec.terminal;
  if (spec.terminal)
    process_config["consoleSize"] = {{"height", spec.rows}, {"width", spec.columns}};
  for (const auto& [name, value] : spec.environment)
    process_config["env"].push_back(name + "=" + value);
  return process_config;
}

// Returns the container's first process: the process with the recorded number, if it is in the
// container's cgroup.
Result<int> first_process_of(const ExecSpec& spec, const Cgroup& cgroup) {
  const auto number = parse_int(trim(TRY(os::read_file(spec.directory + "/" + kProcessFile, 64))));
  if (!number || !is_of(cgroup, int(*number)))
    return not_found("container " + spec.id + " is not running");
  return int(*number);
}

// Returns the message of the runtime; if there is none, `otherwise`.
Error failure_of_runtime(const os::File& output, Error otherwise) {
  std::string message(kRuntimeMessageBytesMax, '\0');
  (void)::fcntl(output.descriptor(), F_SETFL, O_NONBLOCK);
  const ssize_t got = ::read(output.descriptor(), message.data(), message.size());
  message.resize(size_t(std::max<ssize_t>(0, got)));
  const auto said = to_utf8(trim(message));
  return said.empty() ? std::move(otherwise) : not_found(said);
}

}  // namespace

Result<std::unique_ptr<ExecProcess>> start_exec(const ExecSpec& spec) {
  const Json process_config = TRY(process_config_of(spec));
  static std::atomic<uint64_t> count{0};
  const std::string files = spec.directory + "/inside-" + std::to_string(++count);
  TRY(os::write_file(files + kProcessConfig, dump(process_config), 0600));
  std::vector<std::string> words{TRY(find_runtime()), "--root",
                                 runtime_root(),      "--cgroup-manager",
                                 "disabled",          "exec",
                                 "--process",         files + kProcessConfig,
                                 "--pid-file",        files + kProcessNumber};
  std::optional<Console> console;
  if (spec.terminal) {
    console.emplace(TRY(Console::open()));
    words.emplace_back("--console-socket");
    words.push_back(console->path());
  }
  const std::string name = cgroup_name(spec.id, spec.directory);
  words.push_back(name);

  const Cgroup cgroup = Cgroup::named(name);
  const int first = TRY(first_process_of(spec, cgroup));
  const os::File network(
      ::open(("/proc/" + std::to_string(first) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
  if (!network) return from_errno("opening the network namespace of container " + spec.id);
  Ends ends = TRY(make_pipes());
  Child child;
  child.entrances = cgroup.entrances();
  if (const std::string& unified = cgroup_layout().hybrid_unified;
      in_rootless_sandbox() && !unified.empty())
    child.hide = unified.substr(0, unified.rfind('/'));
  else
    child.unmount = unified;
  for (auto& word : words) child.arguments.push_back(word.data());
  child.arguments.push_back(nullptr);
  // The runtime needs no variables of this process, and must not see secrets in them.
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  child.environment = {path.data(), nullptr};
  child.in = ends.theirs_in.descriptor();
  child.out = ends.theirs_out.descriptor();
  child.network = network.descriptor();

  const pid_t process = ::fork();
  if (process < 0) return from_errno("starting the container runtime");
  if (process == 0) become_runtime(child);
  ends.theirs_in.close();
  ends.theirs_out.close();
  if (console) {
    auto terminal = console->take(process);
    if (!terminal) {
      Error error = failure_of_runtime(ends.ours_out, std::move(terminal).error());
      RuntimeExec(process, files, std::move(ends), true).finish();
      return error;
    }
    ends.ours_in = os::File(::fcntl(terminal->descriptor(), F_DUPFD_CLOEXEC, 0));
    ends.ours_out = std::move(*terminal);
  }
  auto inside = std::make_unique<RuntimeExec>(process, files, std::move(ends), spec.terminal);
  inside->resize(spec.columns, spec.rows);
  return std::unique_ptr<ExecProcess>(std::move(inside));
}

}  // namespace trainyard::containers
