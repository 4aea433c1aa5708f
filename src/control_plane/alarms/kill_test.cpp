// Kills a child process with SIGKILL at random times. The child changes the state of alarms,
// acknowledges each change through a pipe, and carries out the actions meanwhile. The action and
// the event of each acknowledged change must have been carried out or still be pending.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "alarms/loop.hpp"
#include "alarms/testing/plain_texts.hpp"
#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::alarms {
namespace {

constexpr int kKills = 20;
constexpr int kPollMilliseconds = 120'000;  // without output within this time a child has failed

// NumberTexts writes the number of the change as the message of its actions.
class NumberTexts final : public AlarmTexts {
 public:
  Texts reason(const Alarm&, const Evaluation&, const Range&, Instant) const override { return {}; }
  Texts composite_reason(const Alarm&, State, const Alarm*, Instant) const override { return {}; }
  std::string message(const Alarm& after, const AlarmState&, const std::string&) const override {
    return after.state.reason;
  }
  std::string event(const Alarm& after, const AlarmState&) const override {
    return after.state.reason;
  }
  Texts state_item(const Alarm&, const AlarmState&) const override { return {}; }
  Texts action_item(const PendingAction&, const std::string&) const override { return {}; }
};

constexpr const char* kFiles[] = {"/actions", "/events"};

// Appends the message to a file, which remains after a kill.
Result<void> deliver(const std::string& directory, const PendingAction& action) {
  const std::string path = directory + kFiles[action.target == kEventBus ? 1 : 0];
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return from_errno(path);
  const std::string line = action.message + "\n";
  const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
  if (written != ssize_t(line.size())) return unavailable("cannot write the message");
  return ok();
}

std::set<int64_t> delivered(const std::string& path) {
  std::ifstream file(path);
  std::set<int64_t> numbers;
  for (int64_t number; file >> number;) numbers.insert(number);
  return numbers;
}

Result<void> set_state(AlarmStore& store, const AlarmTexts& texts, int64_t number) {
  return store.change([&](const Alarms& present) -> Result<Change> {
    Alarm alarm{{"r", "a"}, {}, Instant{}, {}};
    if (const auto found = present.find(alarm.key); found != present.end()) alarm = *found->second;
    alarm.settings.kind = AlarmKind::composite;
    const std::string target = "arn:" + std::to_string(number % 3);
    alarm.settings.actions = {{target}, {target}, {}};
    const State next = alarm.state.value == State::ok ? State::alarm : State::ok;
    return transition(alarm, {next, std::to_string(number), "", Instant{}, {}}, texts);
  });
}

// Runs in the child and never returns.
[[noreturn]] void run_child(const std::string& directory, int pipe, int64_t first) {
  TestClock clock;
  const NumberTexts texts;
  auto store = AlarmStore::open(directory + "/alarms");
  auto metrics = observe::open_metrics(directory + "/metrics");
  if (!store || !metrics) ::_exit(3);
  AlarmLoop loop(**store, **metrics, clock, texts,
                 [&](const PendingAction& action) { return deliver(directory, action); });
  std::thread changes([&] {
    for (int64_t number = first;; ++number) {
      if (!set_state(**store, texts, number)) ::_exit(4);
      if (::write(pipe, &number, sizeof number) != sizeof number) ::_exit(5);
    }
  });
  for (;;) loop.act(clock.now());
}

TEST(Kill, LosesNoActionOfAnAcknowledgedChange) {
  observe::TemporaryDirectory directory;
  SeededRandom random(11);
  int64_t last = 0;  // the last change that was acknowledged or may have been stored
  std::set<int64_t> acknowledged;
  for (int kill = 0; kill < kKills; ++kill) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      run_child(directory.path(), pipe[1], last + 1000);
    }
    ::close(pipe[1]);
    const auto read_one = [&] {
      int64_t number = 0;
      if (::read(pipe[0], &number, sizeof number) != ssize_t(sizeof number)) return false;
      acknowledged.insert(number);
      last = std::max(last, number);
      return true;
    };
    for (uint64_t left = 1 + random.below(30); left-- > 0;) {
      pollfd waiting{.fd = pipe[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&waiting, 1, kPollMilliseconds), 1) << "the child hangs";
      ASSERT_TRUE(read_one()) << "the child failed";
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed before the kill: " << WEXITSTATUS(status);
    while (read_one()) continue;
    ::close(pipe[0]);
  }
  // The test itself carries out the actions that are still pending.
  TestClock clock;
  const NumberTexts texts;
  auto store = std::move(*AlarmStore::open(directory.path() + "/alarms"));
  auto metrics = *observe::open_metrics(directory.path() + "/metrics");
  AlarmLoop loop(*store, *metrics, clock, texts,
                 [&](const PendingAction& action) { return deliver(directory.path(), action); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (!store->due_actions(clock.now(), 1)->empty() && std::chrono::steady_clock::now() < end)
    loop.act(clock.now());
  for (const char* file : kFiles) {
    const std::set<int64_t> all = delivered(directory.path() + file);
    for (const int64_t number : acknowledged)
      EXPECT_TRUE(all.contains(number)) << file << ": change " << number << " was lost";
  }
  EXPECT_FALSE(acknowledged.empty());
}

}  // namespace
}  // namespace trainyard::alarms
