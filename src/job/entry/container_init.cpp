#include "entry/container_init.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>

#include "contract/container_init.hpp"
#include "entry/children.hpp"
#include "entry/init_child.hpp"
#include "os/files.hpp"

namespace trainyard::entry {
namespace {

constexpr const char* kScratch[] = {"/tmp", "/dev/shm"};
// The limit of rounds of killing. Killed processes end at once, and this process inherits their
// children, so some rounds are enough.
constexpr int kKillRoundsMax = 1000;
constexpr int kKillPauseMilliseconds = 5;

class ContainerInit {
 public:
  explicit ContainerInit(os::PacketSocket agent) : agent_(std::move(agent)) {}

  int run() {
    for (;;) {
      pollfd ready[2] = {{agent_.descriptor(), POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}};
      const bool stopping = child_ && child_->stopping();
      const int got = ::poll(ready, 2,
                             has_more_  ? 0
                             : stopping ? int(kStopCheckInterval.count())
                                        : -1);
      if (got < 0 && errno != EINTR) return 1;
      if (got == 0 && !has_more_) child_->continue_stop();
      // Reports the child's end before the next order is read.
      if (ready[1].revents) (void)signals_.take();
      if (ready[1].revents || has_more_) reap();
      if (!ready[0].revents) continue;
      auto packet = agent_.receive(0ms);
      if (!packet) return 0;  // the agent has ended
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
      else if (child_)
        child_->signal(signal->number);
    } else {
      clear();
    }
  }

  void start(contract::RunChild& run, const os::File& output) {
    if (child_) return answer(contract::NotStarted{"a child is already running"});
    InitProgram program{
        std::move(run.arguments), {}, std::move(run.working_directory), output.descriptor()};
    for (const auto& [name, value] : run.environment)
      program.environment.push_back(name + "=" + value);
    auto child = InitChild::start(std::move(program));
    if (!child) return answer(contract::NotStarted{child.error().message});
    child_ = *std::move(child);
    answer(contract::Started{});
  }

  // Reaps ended processes, orphans too.
  void reap() {
    if (!child_) {
      int count = 0;
      while (count<kReapedAtOnce&& ::waitpid(-1, nullptr, WNOHANG)> 0) ++count;
      has_more_ = count == kReapedAtOnce;
      return;
    }
    const auto code = child_->reap();
    has_more_ = child_->has_more();
    if (code) {
      child_.reset();
      answer(contract::Ended{*code});
    }
  }

  void clear() {
    for (int round = 0; round < kKillRoundsMax; round++) {
      // Signals all other processes; ESRCH: there are none.
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
  std::optional<InitChild> child_;
  bool has_more_ = false;  // ended processes may be left
};

}  // namespace

int run_container_init(os::PacketSocket agent) {
  // Required because this program kills every visible process: in its own PID namespace its
  // children, elsewhere all processes of the machine.
  if (::getpid() != 1) {
    std::fputs("trainyard-entry --keep is for the first process of a container\n", stderr);
    return 2;
  }
  // Processes that a child left must not inspect this process or reach its socket.
  ::prctl(PR_SET_DUMPABLE, 0);
  return ContainerInit(std::move(agent)).run();
}

}  // namespace trainyard::entry
