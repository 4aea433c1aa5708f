#include "agent/report/progress.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/testing/test_clock.hpp"
#include "objects/memory.hpp"

namespace trainyard::agent {
namespace {

struct Reports {
  std::vector<wire::Progress> all;
  std::function<void(const wire::Message&)> say = [this](const wire::Message& message) {
    all.push_back(std::get<wire::Progress>(message));
  };
};

TEST(ProgressMeter, ReportsTheStartTheProgressAndTheEnd) {
  TestClock clock(Instant{1h});
  Reports reports;
  ProgressMeter meter("channel train", reports.say, clock);
  meter.expect(100);
  meter.moved(10);
  EXPECT_EQ(reports.all.size(), 1u);  // too soon
  clock.advance(kProgressInterval);
  meter.moved(20);
  meter.finish();
  ASSERT_EQ(reports.all.size(), 3u);
  EXPECT_EQ(reports.all[1].done_bytes, 30u);
  EXPECT_EQ(reports.all[1].total_bytes, 100u);
  EXPECT_FALSE(reports.all[1].finished);
  EXPECT_TRUE(reports.all[2].finished);
  EXPECT_EQ(reports.all[2].what, "channel train");
}

TEST(ProgressMeter, ReportsNothingWithoutARecipient) {
  TestClock clock(Instant{1h});
  ProgressMeter meter("image", nullptr, clock);
  meter.moved(1);
  meter.finish();
}

TEST(Counted, CountsListedBytesAsExpectedAndReadBytesAsMoved) {
  TestClock clock(Instant{1h});
  Reports reports;
  SeededRandom random(1);
  const auto store = objects::make_memory(clock, random);
  ASSERT_TRUE(store->create_bucket("yard", "us-east-1"));
  ASSERT_TRUE(objects::write_all(*store, "yard", "a", "12345"));
  ProgressMeter meter("channel train", reports.say, clock);
  const auto view = counted(*store, meter, true);
  ASSERT_TRUE(view->list("yard", {}));
  EXPECT_EQ(*objects::read_all(*view, "yard", "a", 100), "12345");
  meter.finish();
  EXPECT_EQ(reports.all.back().done_bytes, 5u);
  EXPECT_EQ(reports.all.back().total_bytes, 5u);
}

}  // namespace
}  // namespace trainyard::agent
