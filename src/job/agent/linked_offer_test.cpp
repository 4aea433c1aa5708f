#include "agent/linked_offer.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "base/testing/test_clock.hpp"

namespace trainyard::agent {
namespace {

using domain::Fault;
using domain::HostState;

const AgentAllocation kAllocation{17, 0, 60s, 10min};

wire::StateFact ended(HostState state, std::optional<Fault> fault = {}) {
  wire::StateFact fact;
  fact.state = state;
  fact.fault = fault;
  return fact;
}

TEST(LinkedOffer, IsMadeUnlessTheMachineMayHaveFailedTheJob) {
  TestClock clock;
  const LinkedOffer offer(kAllocation, clock);
  EXPECT_TRUE(offer.may_follow(ended(HostState::finished)));
  EXPECT_TRUE(offer.may_follow(ended(HostState::failed, Fault::algorithm)));
  EXPECT_FALSE(offer.may_follow(ended(HostState::failed, Fault::client)));
  EXPECT_FALSE(offer.may_follow(ended(HostState::failed, Fault::internal)));
  const LinkedOffer without({0, 0, 60s, 10min}, clock);
  EXPECT_FALSE(without.may_follow(ended(HostState::finished)));
  const LinkedOffer for_one({17, 0, 0s, 10min}, clock);
  EXPECT_FALSE(for_one.may_follow(ended(HostState::finished)));
}

TEST(LinkedOffer, SendsTheRemainingTimeOfTheAllocation) {
  TestClock clock;
  const LinkedOffer offer(kAllocation, clock);
  clock.advance(4min);
  EXPECT_EQ(offer.message(true).time_left, 6min);
  EXPECT_TRUE(offer.message(true).keeps_host);
  clock.advance(1h);
  EXPECT_EQ(offer.message(false).time_left, 0s);
}

TEST(LinkedOffer, TakesAnOrderThatArrivedBeforeTheWait) {
  TestClock clock;
  LinkedOffer offer(kAllocation, clock);
  offer.deliver(wire::NextOrder{"next", false});
  offer.deliver(wire::Goodbye{});
  offer.deliver(wire::NextOrder{"next", false});  // repeated on another link
  const auto order = offer.take();
  ASSERT_TRUE(order);
  EXPECT_EQ(order->order, "next");
}

TEST(LinkedOffer, TakesAnOrderWhileItWaits) {
  TestClock clock;
  LinkedOffer offer(kAllocation, clock);
  std::thread server([&] { offer.deliver(wire::NextOrder{"next", true}); });
  const auto order = offer.take();
  server.join();
  ASSERT_TRUE(order);
  EXPECT_TRUE(order->same_host);
}

TEST(LinkedOffer, EndsWhenItIsReleasedRefusedOrCancelled) {
  TestClock clock;
  LinkedOffer released(kAllocation, clock), refused(kAllocation, clock),
      cancelled(kAllocation, clock);
  released.deliver(wire::NextOrder{});
  EXPECT_FALSE(released.take());
  refused.deliver(wire::Refused{"the attempt has ended"});
  EXPECT_FALSE(refused.take());
  cancelled.deliver(wire::NextOrder{"next", false});
  cancelled.cancel();
  EXPECT_FALSE(cancelled.take());
}

TEST(LinkedOffer, EndsAfterTheLongestWait) {
  TestClock clock;
  LinkedOffer offer({17, true, 1ms, 10min}, clock);
  EXPECT_FALSE(offer.take());
}

}  // namespace
}  // namespace trainyard::agent
