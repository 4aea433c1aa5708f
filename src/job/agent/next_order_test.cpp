#include "agent/next_order.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

class NextOrders : public testing::Test {
 protected:
  std::string path(const char* name) const { return directory_.path() + "/" + name; }
  // Does what the launcher does. Returns whether the agent was waiting.
  bool take() const {
    EXPECT_TRUE(os::write_file(path("next.json"), "order"));
    return std::rename(path("idle").c_str(), path("taken").c_str()) == 0;
  }
  os::TemporaryDirectory directory_;
  NextOrder next_{directory_.path()};
};

TEST_F(NextOrders, ReachAWaitingAgent) {
  next_.offer();
  std::thread launcher([&] { EXPECT_TRUE(take()); });
  const auto order = next_.take(60s);
  launcher.join();
  ASSERT_TRUE(order) << order.error().message;
  EXPECT_EQ(*order, "order");
  EXPECT_TRUE(os::list_directory(directory_.path())->empty());
}

TEST_F(NextOrders, DoNotReachAnAgentWithoutAnOffer) {
  const auto none = next_.take(60s);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST_F(NextOrders, AnAgentThatStopsWaitingGetsNoOrder) {
  next_.offer();
  const auto none = next_.take(0ms);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_FALSE(take());
  next_.offer();
  next_.cancel();
  EXPECT_FALSE(take());
}

TEST_F(NextOrders, ReachAnAgentThatWaitsLater) {
  next_.offer();
  ASSERT_TRUE(take());
  const auto order = next_.take(0ms);
  ASSERT_TRUE(order && *order);
}

}  // namespace
}  // namespace trainyard::agent
