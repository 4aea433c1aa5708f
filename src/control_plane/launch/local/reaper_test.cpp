#include "launch/local/reaper.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "base/testing/test_clock.hpp"
#include "base/thread_safety.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::launch {
namespace {

networks::PrivateNetwork network(uint32_t number) {
  networks::PrivateNetwork made;
  made.subnet = {0x0ac90000 + number * 16, 28};
  made.hosts.emplace_back();
  return made;
}

os::MachineClock clock;

struct Removals {
  Mutex mutex;
  std::vector<size_t> sizes GUARDED_BY(mutex);
  std::atomic<int> failures{0};
  std::atomic<int> gone{0};
  Result<void> counted() {
    gone++;
    return ok();
  }
  NetworkReaper::Remove function() {
    return [this](const std::vector<networks::PrivateNetwork>& networks) -> Result<void> {
      if (failures.fetch_sub(1) > 0) return unavailable("not now");
      const MutexLock lock(mutex);
      sizes.push_back(networks.size());
      return ok();
    };
  }
};

TEST(Reaper, RemovesAllPendingNetworksTogether) {
  Removals removals;
  {
    NetworkReaper reaper(clock, removals.function());
    const NetworkReaper::Start start(reaper);
    for (uint32_t i = 0; i < 5; i++) reaper.take(network(i), [&] { return removals.counted(); });
    EXPECT_EQ(reaper.waiting().size(), 5u) << "their addresses are in use until they have exited";
    reaper.drain();
    EXPECT_TRUE(reaper.waiting().empty());
    EXPECT_EQ(removals.gone, 5);
  }
  const MutexLock lock(removals.mutex);
  EXPECT_LE(removals.sizes.size(), 2u);
}

TEST(Reaper, DoesNotWaitForAPauseWhenManyNetworksArePending) {
  Removals removals;
  NetworkReaper reaper(clock, removals.function());
  const NetworkReaper::Start start(reaper);
  for (uint32_t i = 0; i < ReaperPace().waiting_max; i++)
    reaper.take(network(i), [&] { return removals.counted(); });
  while (removals.gone < 1) std::this_thread::yield();
}

// Time stands still, so that there is never a pause.
TEST(Reaper, RemovesOneNetworkAfterEachStart) {
  Removals removals;
  TestClock stopped;
  NetworkReaper reaper(stopped, removals.function());
  {
    const NetworkReaper::Start start(reaper);
    for (uint32_t i = 0; i < 3; i++) reaper.take(network(i), [&] { return removals.counted(); });
  }
  while (reaper.waiting().size() > 2) std::this_thread::yield();
  EXPECT_EQ(removals.gone, 1);
  {
    const NetworkReaper::Start start(reaper);
    EXPECT_EQ(reaper.waiting().size(), 2u);
  }
  while (reaper.waiting().size() > 1) std::this_thread::yield();
  EXPECT_EQ(removals.gone, 2);
  const MutexLock lock(removals.mutex);
  EXPECT_EQ(removals.sizes, (std::vector<size_t>{1, 1}));
}

TEST(Reaper, RemovesManyNetworksTogetherIfTheKernelWaitsOnce) {
  Removals removals;
  TestClock stopped;
  NetworkReaper reaper(stopped, removals.function(), {150ms, 2s, 5, false});
  {
    const NetworkReaper::Start start(reaper);
    for (uint32_t i = 0; i < 4; i++) reaper.take(network(i), [&] { return removals.counted(); });
  }
  EXPECT_EQ(reaper.waiting().size(), 4u) << "a start triggers no removal";
  reaper.take(network(4), [&] { return removals.counted(); });
  while (!reaper.waiting().empty()) std::this_thread::yield();
  const MutexLock lock(removals.mutex);
  EXPECT_EQ(removals.sizes, (std::vector<size_t>{5}));
}

TEST(Reaper, RetriesFailedRemovals) {
  Removals removals;
  removals.failures = 2;
  NetworkReaper reaper(clock, removals.function());
  reaper.take(network(1), [&] { return removals.counted(); });
  reaper.drain();
  reaper.drain();
  EXPECT_EQ(removals.gone, 1);
  EXPECT_TRUE(reaper.waiting().empty());
}

TEST(Reaper, KeepsTheAddressesInUseUntilTheRestIsRemoved) {
  Removals removals;
  std::atomic<bool> possible{false};
  NetworkReaper reaper(clock, removals.function());
  reaper.take(network(1), [&]() -> Result<void> {
    if (!possible) return unavailable("not now");
    return ok();
  });
  reaper.drain();
  EXPECT_EQ(reaper.waiting().size(), 1u);
  possible = true;
  while (!reaper.waiting().empty()) reaper.drain();
  const MutexLock lock(removals.mutex);
  EXPECT_EQ(removals.sizes, (std::vector<size_t>{1})) << "the network itself is removed once";
}

TEST(Reaper, RemovesPendingNetworksBeforeItEnds) {
  Removals removals;
  {
    NetworkReaper(clock, removals.function()).take(network(1), [&] { return removals.counted(); });
  }
  EXPECT_EQ(removals.gone, 1);
}

}  // namespace
}  // namespace trainyard::launch
