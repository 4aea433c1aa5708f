#include "console/job_feed.hpp"

#include <gtest/gtest.h>

namespace trainyard::api::console {
namespace {

using Names = std::vector<std::string>;

TEST(JobFeed, ReturnsEachChangedJobOnce) {
  JobFeed feed;
  feed.publish("eu-west-1", "before");
  const uint64_t begin = feed.position();
  for (const char* job : {"a", "b", "a"}) feed.publish("eu-west-1", job);
  feed.publish("us-east-1", "elsewhere");
  const auto changes = feed.since(begin, "eu-west-1");
  EXPECT_EQ(changes.jobs, (Names{"b", "a"}));
  EXPECT_FALSE(changes.missed);
  EXPECT_TRUE(feed.since(changes.position, "eu-west-1").jobs.empty());
}

TEST(JobFeed, KeepsReadersIndependent) {
  JobFeed feed;
  const uint64_t slow = feed.position();
  feed.publish("r", "a");
  const uint64_t quick = feed.since(slow, "r").position;
  feed.publish("r", "b");
  EXPECT_EQ(feed.since(quick, "r").jobs, Names{"b"});
  EXPECT_EQ(feed.since(slow, "r").jobs, (Names{"a", "b"}));
}

TEST(JobFeed, TellsAReaderThatItMissedChanges) {
  JobFeed feed;
  const uint64_t begin = feed.position();
  for (size_t i = 0; i < JobFeed::kChangesMax; ++i) feed.publish("r", "j" + std::to_string(i));
  EXPECT_EQ(feed.since(begin, "r").jobs.size(), JobFeed::kChangesMax);
  feed.publish("r", "last");
  const auto changes = feed.since(begin, "r");
  EXPECT_TRUE(changes.missed);
  EXPECT_TRUE(changes.jobs.empty());
  EXPECT_FALSE(feed.since(changes.position, "r").missed);
  EXPECT_EQ(feed.since(changes.position - 1, "r").jobs, Names{"last"}) << "the ring wrapped around";
}

}  // namespace
}  // namespace trainyard::api::console
