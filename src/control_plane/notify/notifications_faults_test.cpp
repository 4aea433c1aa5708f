// Tests notifications on a disk whose syncs fail.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "notify/testing/notify_world.hpp"

namespace trainyard::notify {
namespace {

constexpr size_t kPublishedUnderFaults = 3;

struct FaultyNotifyWorld : NotifyWorld {
  FaultyNotifyWorld() {
    EXPECT_TRUE(open());
    topic();
    subscribe("https://u.example/", [](Subscription& each) { each.raw = true; });
    close();
  }
  std::set<std::string> sent_bodies() const {
    std::set<std::string> bodies;
    for (const Outgoing& each : sent) bodies.insert(each.body);
    return bodies;
  }
};

// Fails each disk operation during three publishes, one at a time. Acknowledged messages are
// delivered after a restart; after a failed sync, no message is acknowledged or sent.
void fail_each_publish(int error_number) {
  FaultyNotifyWorld world;
  bool a_sync_failed = false;
  for (uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 200u);
    NthFileFault fault(nth, error_number);
    world.faults = &fault;
    ASSERT_TRUE(world.open());
    fault.arm();
    const auto sync_failed = [&] { return fault.struck() && fault.failed() == FileStep::sync; };
    std::set<std::string> acknowledged;
    for (size_t i = 0; i < kPublishedUnderFaults; ++i) {
      const std::string body = std::to_string(nth) + "." + std::to_string(i);
      const auto published = world.publish(body);
      if (published) acknowledged.insert(body);
      if (!sync_failed()) continue;
      ASSERT_FALSE(published) << "publish succeeded after a failed sync";
      EXPECT_EQ(published.error().kind, Kind::unavailable);
      EXPECT_NE(published.error().message.find("until the server is restarted"), std::string::npos)
          << published.error().message;
    }
    if (sync_failed()) {
      a_sync_failed = true;
      EXPECT_EQ(world.all->deliverer().attempt_due(), 0u) << "no result could be stored";
      EXPECT_FALSE(world.all->create_topic({.arn = std::string(NotifyWorld::kTopic) + "2"}));
    } else {
      EXPECT_GE(acknowledged.size() + 1, kPublishedUnderFaults) << "one operation has failed";
    }
    world.close();
    world.faults = nullptr;
    ASSERT_TRUE(world.open());
    world.all->deliverer().attempt_due();
    const auto bodies = world.sent_bodies();
    for (const std::string& body : acknowledged) EXPECT_TRUE(bodies.contains(body)) << body;
    EXPECT_TRUE(world.publish("after"));
    world.close();
    if (!fault.struck()) break;
  }
  EXPECT_TRUE(a_sync_failed);
}

TEST(NotificationsFaults, StopAfterAFailedSyncAndLoseNoAcknowledgedMessage) {
  fail_each_publish(EIO);
}

TEST(NotificationsFaults, ContinueAfterAFullDiskAndLoseNoAcknowledgedMessage) {
  fail_each_publish(ENOSPC);
}

TEST(NotificationsFaults, SendADeliveryWhoseResultIsNotStoredOnceUntilTheNextStart) {
  class EachSync final : public FileFaults {
   public:
    FileFault before(FileStep step, const std::string&, size_t) override {
      return {armed && step == FileStep::sync ? EIO : 0, 0};
    }
    bool armed = false;
  };
  FaultyNotifyWorld world;
  EachSync fault;
  world.faults = &fault;
  ASSERT_TRUE(world.open());
  ASSERT_TRUE(world.publish("x"));
  fault.armed = true;
  EXPECT_EQ(world.all->deliverer().attempt_due(), 1u);
  world.clock.advance(1h);
  EXPECT_EQ(world.all->deliverer().attempt_due(), 0u);
  EXPECT_EQ(world.all->counts().pending, 1u);
  fault.armed = false;
  world.close();
  world.faults = nullptr;
  ASSERT_TRUE(world.open());
  // The result may be stored although its sync failed.
  EXPECT_LE(world.all->deliverer().attempt_due(), 1u);
  EXPECT_EQ(world.all->counts().pending, 0u);
  EXPECT_TRUE(world.sent_bodies().contains("x"));
}

}  // namespace
}  // namespace trainyard::notify
