// Kills a child with SIGKILL at random times. The child publishes messages, and acknowledges them
// through a pipe. Each acknowledged message must be delivered afterwards.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>

#include "notify/testing/notify_world.hpp"

namespace trainyard::notify {
namespace {

constexpr int kKills = 15;
constexpr int kPollMilliseconds = 60'000;  // without output within this time a child has failed

struct Record {
  bool delivered;  // else: published
  uint64_t number;
};

void write_record(int pipe, const Record& record) {
  if (::write(pipe, &record, sizeof record) != sizeof record) ::_exit(5);
}

// Publishes numbers from `first`, and attempts deliveries after every third. Never returns.
[[noreturn]] void run_child(NotifyWorld& world, uint64_t first, int pipe) {
  world.on_send = [pipe](const Outgoing& out) {
    write_record(pipe, {true, std::stoull(out.body)});
  };
  if (!world.open()) ::_exit(3);
  for (uint64_t number = first;; ++number) {
    if (!world.publish(std::to_string(number))) ::_exit(4);
    write_record(pipe, {false, number});
    if (number % 3 == 0) world.all->deliverer().attempt_due();
  }
}

struct Seen {
  std::set<uint64_t> published, delivered;
  void add(const Record& record) {
    (record.delivered ? delivered : published).insert(record.number);
  }
};

// Reads some records, kills the child, and reads the rest.
void watch_and_kill(pid_t child, int pipe, uint64_t records, Seen& seen) {
  Record record{};
  while (records-- > 0) {
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&waiting, 1, kPollMilliseconds), 1) << "the child hangs";
    ASSERT_EQ(::read(pipe, &record, sizeof record), ssize_t(sizeof record)) << "the child failed";
    seen.add(record);
  }
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed before the kill: " << WEXITSTATUS(status);
  while (::read(pipe, &record, sizeof record) == ssize_t(sizeof record)) seen.add(record);
}

TEST(NotificationsKill, LosesNoAcknowledgedMessage) {
  NotifyWorld world;
  ASSERT_TRUE(world.open());
  world.topic();
  world.subscribe("https://u.example/", [](Subscription& each) { each.raw = true; });
  world.close();
  SeededRandom random(11);
  uint64_t first = 1;
  size_t left_pending = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      run_child(world, first, pipe[1]);
    }
    ::close(pipe[1]);
    Seen seen;
    watch_and_kill(child, pipe[0], 1 + random.below(30), seen);
    ::close(pipe[0]);
    if (HasFatalFailure()) return;
    world.sent.clear();
    ASSERT_TRUE(world.open());
    left_pending += world.all->counts().pending;
    world.all->deliverer().attempt_due();
    for (const auto& each : world.sent) seen.delivered.insert(std::stoull(each.body));
    for (const uint64_t each : seen.published)
      EXPECT_TRUE(seen.delivered.contains(each)) << "message " << each << ", kill " << kill;
    EXPECT_EQ(world.all->counts().pending, 0u);
    world.close();
    first += seen.published.size() + 2;  // one more may be stored
  }
  EXPECT_GT(left_pending, 0u) << "no delivery was pending when the child was killed";
}

}  // namespace
}  // namespace trainyard::notify
