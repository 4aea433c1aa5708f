// Tests how the busy time of a link is derived from the counters of the kernel.
#include "collectives/transport/tcp/link_meter.hpp"

#include <gtest/gtest.h>

namespace trainyard::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kMegabyte = 1'000'000;

struct MeteredLink {
  LinkMeter meter{3};
  LinkCounters counters;
  std::chrono::steady_clock::time_point now{seconds(1000)};

  // Lets time pass in which megabytes are sent; the link is busy for `busy` of it.
  void send(uint64_t megabytes, milliseconds busy, uint64_t megabytes_per_second) {
    now += milliseconds(100);
    counters.busy += busy;
    counters.bytes += megabytes * kMegabyte;
    counters.rate = megabytes_per_second * kMegabyte;
    meter.add(counters, now);
  }
  milliseconds busy() const { return std::chrono::duration_cast<milliseconds>(meter.load().busy); }
};

TEST(LinkMeter, CountsTheKernelsBusyTimeWithoutARate) {
  MeteredLink link;
  link.send(10, milliseconds(80), 0);
  EXPECT_EQ(link.busy(), milliseconds(80));
  EXPECT_EQ(link.meter.load().bytes, 10 * kMegabyte);
  EXPECT_EQ(link.meter.load().peer, 3);
}

TEST(LinkMeter, LimitsBusyTimeByTheHighestRecentRate) {
  MeteredLink link;
  link.send(10, milliseconds(80), 1000);
  EXPECT_EQ(link.busy(), milliseconds(10)) << "80 ms for 10 ms of bytes: it waited for a processor";
  link.send(10, milliseconds(90), 50);
  EXPECT_EQ(link.busy(), milliseconds(20)) << "a single low rate is noise";
  link.send(10, milliseconds(4), 1000);
  EXPECT_EQ(link.busy(), milliseconds(24)) << "the kernel's busy time is shorter";
}

TEST(LinkMeter, AcceptsALowRateThatLastsAsTheLinksRate) {
  MeteredLink link;
  link.send(10, milliseconds(80), 1000);
  const auto ends = link.now + 2 * LinkMeter::kRateWindow;
  while (link.now < ends) link.send(4, milliseconds(90), 50);
  const auto before = link.busy();
  link.send(4, milliseconds(90), 50);
  EXPECT_EQ(link.busy() - before, milliseconds(80));
}

TEST(LinkMeter, ForgetsRatesFromBeforeALongPause) {
  MeteredLink link;
  link.send(10, milliseconds(80), 1000);
  link.now += 2 * LinkMeter::kRateWindow;
  link.send(4, milliseconds(90), 50);
  EXPECT_EQ(link.busy(), milliseconds(10 + 80));
}

TEST(LinkMeter, CountersThatDecreaseAddNothing) {
  MeteredLink link;
  link.send(10, milliseconds(80), 1000);
  link.counters = {};
  link.send(0, milliseconds(0), 0);
  EXPECT_EQ(link.busy(), milliseconds(10));
}

}  // namespace
}  // namespace trainyard::collectives
