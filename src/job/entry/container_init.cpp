#include "entry/container_init.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/text.hpp"
#include "contract/container_init.hpp"
#include "entry/children.hpp"
#include "os/files.hpp"

namespace trainyard::entry {
namespace {

constexpr const char* kScratch[] = {"/tmp", "/dev/shm"};
constexpr const char* kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr int kCannotRun = 127;
// Killed processes end at once, and their children become ours: some rounds are enough.
constexpr int kKillRoundsMax = 1000;
constexpr int kKillPauseMilliseconds = 5;

// Searches the child's program on its own PATH, as a shell would. Returns the given name when it is
// not found.
std::string program_of(const contract::RunChild& run) {
  const std::string& name = run.arguments[0];
  if (name.find('/') != name.npos) return name;
  const auto path = run.environment.find("PATH");
  for (const auto directory :
       split(path == run.environment.end() ? kUsualPath : path->second, ':')) {
    const std::string found = std::string(directory.empty() ? "." : directory) + "/" + name;
    if (::access(found.c_str(), X_OK) == 0) return found;
  }
  return name;
}

class ContainerInit {
 public:
  explicit ContainerInit(os::PacketSocket agent) : agent_(std::move(agent)) {}

  int run() {
    for (;;) {
      pollfd ready[2] = {{agent_.descriptor(), POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}};
      if (::poll(ready, 2, -1) < 0 && errno != EINTR) return 1;
      // Reports the child's end before the next order is read.
      if (ready[1].revents) {
        (void)signals_.take();
        reap();
      }
      if (!ready[0].revents) continue;
      auto packet = agent_.receive(0ms);
      if (!packet) return 0;  // the agent is gone
      if (*packet) obey(**packet);
    }
  }

 private:
  void answer(const contract::InitReport& answer) { (void)agent_.send(contract::encode(answer)); }

  void obey(os::PacketSocket::Packet& packet) {
    auto order = contract::decode_init_order(packet.bytes);
    if (!order) return answer(contract::NotStarted{order.error().message});
    if (auto* run = std::get_if<contract::RunChild>(&*order)) {
      start(*run, packet.descriptor);
    } else if (const auto* signal = std::get_if<contract::SignalChild>(&*order)) {
      if (signal->all)
        ::kill(-1, signal->number);
      else if (child_ > 0)
        ::kill(child_, signal->number);
    } else {
      clear();
    }
  }

  void start(contract::RunChild& run, const os::File& output) {
    if (child_ > 0) return answer(contract::NotStarted{"a child is already running"});
    if (run.arguments.empty())
      return answer(contract::NotStarted{"invalid order: the child has no program"});
    const std::string program = program_of(run);
    std::vector<std::string> lines;
    for (const auto& [name, value] : run.environment) lines.push_back(name + "=" + value);
    std::vector<char*> arguments, environment;
    for (auto& word : run.arguments) arguments.push_back(word.data());
    for (auto& line : lines) environment.push_back(line.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return answer(contract::NotStarted{std::strerror(errno)});
    const os::File reading(ends[0]);
    os::File writing(ends[1]);
    const pid_t child = ::fork();
    if (child == 0)
      become(program, run.working_directory, arguments.data(), environment.data(),
             output.descriptor(), ends[1]);
    if (child < 0) return answer(contract::NotStarted{std::strerror(errno)});
    writing.close();
    int error_number = 0;
    ssize_t got;
    do got = ::read(reading.descriptor(), &error_number, sizeof error_number);
    while (got < 0 && errno == EINTR);
    if (got == sizeof error_number) {
      (void)::waitpid(child, nullptr, 0);
      // In the runtime's words.
      return answer(contract::NotStarted{
          error_number == ENOENT ? "executable file `" + run.arguments[0] + "` not found in $PATH"
                                 : run.arguments[0] + ": " + std::strerror(error_number)});
    }
    child_ = child;
    answer(contract::Started{});
  }

  [[noreturn]] static void become(const std::string& program, const std::string& directory,
                                  char** arguments, char** environment, int output, int failure) {
    ::setsid();
    for (int number = 1; number < NSIG; number++) ::signal(number, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::umask(0022);
    const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input >= 0 && ::dup2(input, 0) >= 0 && ::dup2(output, 1) >= 0 && ::dup2(output, 2) >= 0 &&
        ::chdir(directory.c_str()) == 0) {
      ::execve(program.c_str(), arguments, environment);
    }
    const int error_number = errno;
    (void)!::write(failure, &error_number, sizeof error_number);
    ::_exit(kCannotRun);
  }

  // Reaps all ended processes, orphans too.
  void reap() {
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != child_) continue;
      child_ = -1;
      answer(contract::Ended{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)});
    }
  }

  void clear() {
    for (int round = 0; round < kKillRoundsMax; round++) {
      // To all but us; ESRCH when there is none left.
      if (::kill(-1, SIGKILL) != 0 && errno == ESRCH) break;
      reap();
      if (::kill(-1, 0) != 0 && errno == ESRCH) break;
      ::poll(nullptr, 0, kKillPauseMilliseconds);
    }
    reap();
    for (const char* directory : kScratch)
      if (const auto names = os::list_directory(directory))
        for (const auto& name : *names) (void)os::remove_all(std::string(directory) + "/" + name);
    answer(contract::Cleared{});
  }

  os::PacketSocket agent_;
  Signals signals_;
  pid_t child_ = -1;
};

}  // namespace

int run_container_init(os::PacketSocket agent) {
  // It kills every visible process: in a namespace of its own those are its children, elsewhere the
  // whole machine.
  if (::getpid() != 1) {
    std::fputs("trainyard-entry --keep is for the first process of a container\n", stderr);
    return 2;
  }
  // Processes that a child left must not be able to inspect us, nor reach the socket.
  ::prctl(PR_SET_DUMPABLE, 0);
  return ContainerInit(std::move(agent)).run();
}

}  // namespace trainyard::entry
