// Kills a child with SIGKILL at random times while it appends events and deliveries write them to a
// bucket and a log group. Each acknowledged event must arrive in both, and only once in the bucket.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <sstream>

#include "base/random.hpp"
#include "log_routing/testing/delivery_world.hpp"

namespace trainyard::log_routing {
namespace {

constexpr int kKills = 12;
constexpr int kChildEvents = 200;          // a child waits for its end after this number of events
constexpr int kPollMilliseconds = 60'000;  // without output within this time the child has failed

// Appends numbers from `first`, and writes each to the pipe after it is stored. Never returns. The
// events have a limit, since a fast disk stores thousands before the parent process runs again.
[[noreturn]] void run_child(const std::string& path, int first, int pipe) {
  DeliveryWorld world(path, uint64_t(first) + 1);
  if (!world.open()) ::_exit(3);
  for (int number = first; number < first + kChildEvents; ++number) {
    const std::vector<observe::LogEvent> events{
        {world.clock.now(), world.clock.now(), std::to_string(number)}};
    if (!world.logs->append({kDeliveryRegion, "g", "s"}, events, uint64_t(number))) ::_exit(4);
    if (::write(pipe, &number, sizeof number) != sizeof number) ::_exit(5);
  }
  for (;;) ::pause();
}

std::multiset<int> numbers(const std::string& text) {
  std::multiset<int> found;
  std::istringstream in(text);
  for (int number; in >> number;) found.insert(number);
  return found;
}

TEST(DeliveryKill, DeliversAcknowledgedEvents) {
  const observe::TemporaryDirectory directory;
  {
    DeliveryWorld world(directory.path());
    world.start();
    ASSERT_OK(world.deliver("arn:aws:s3:::bucket"));
    ASSERT_OK(world.deliver(kGroupArns + "to"));
  }
  SeededRandom random(11);
  int last = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      run_child(directory.path(), last + 1, pipe[1]);
    }
    ::close(pipe[1]);
    for (uint64_t left = 1 + random.below(40); left-- > 0;) {
      pollfd waiting{.fd = pipe[0], .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&waiting, 1, kPollMilliseconds), 1) << "the child hangs";
      ASSERT_EQ(::read(pipe[0], &last, sizeof last), ssize_t(sizeof last)) << "the child failed";
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed before the kill: " << WEXITSTATUS(status);
    while (::read(pipe[0], &last, sizeof last) == ssize_t(sizeof last)) continue;
    ::close(pipe[0]);
    // The last event may be stored although its number was not read from the pipe.
  }
  DeliveryWorld world(directory.path(), UINT64_MAX);
  ASSERT_OK(world.open());
  ASSERT_TRUE(world.all->drain(kDeliveryDeadline));
  const auto stored = numbers(world.all_text());
  std::string forwarded;
  for (const std::string& each : world.messages("to")) forwarded += each + " ";
  const auto appended = numbers(forwarded);
  for (int number = 1; number <= last; ++number) {
    EXPECT_EQ(stored.count(number), 1u) << number;
    EXPECT_GE(appended.count(number), 1u) << number;
  }
}

}  // namespace
}  // namespace trainyard::log_routing
