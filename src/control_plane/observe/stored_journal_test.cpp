#include <gtest/gtest.h>

#include "observe/followed_metrics.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

struct JournalWorld {
  TemporaryDirectory directory;
  MetricFollowers settings{.journal = {.readers = {"a", "b"}}};
  std::unique_ptr<Metrics> metrics;
  PointJournal* journal = nullptr;

  JournalWorld() { restart(); }
  void restart() {
    metrics.reset();
    auto opened = open_followed_metrics(directory.path(), {}, settings);
    EXPECT_TRUE(opened) << opened.error().message;
    metrics = std::move(opened->metrics);
    journal = opened->journal;
  }
  void append(int first, int count) {
    std::vector<MetricRecord> records;
    for (int i = first; i < first + count; ++i)
      records.push_back({{"eu-west-1", "Custom", "m", {{"n", std::to_string(i % 3)}}},
                         sample_of(from_milliseconds(1000 + i), i)});
    ASSERT_OK(metrics->append(records));
  }
  JournalPage read(const std::string& reader, size_t count_max = 100) {
    auto page = journal->read(reader, count_max);
    EXPECT_TRUE(page) << page.error().message;
    return *std::move(page);
  }
  std::vector<double> values(const std::string& reader, size_t count_max = 100) {
    std::vector<double> out;
    for (const auto& record : read(reader, count_max).records) out.push_back(record.sample.sum);
    return out;
  }
};

TEST(StoredJournal, ReadsFromThePositionOfEachReader) {
  JournalWorld world;
  world.append(0, 4);
  EXPECT_EQ(world.values("a", 3), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(world.values("a", 3), (std::vector<double>{0, 1, 2})) << "the position has not changed";
  ASSERT_OK(world.journal->advance("a", world.read("a", 3).position));
  world.restart();
  EXPECT_EQ(world.values("a"), (std::vector<double>{3}));
  EXPECT_EQ(world.values("b"), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(*world.journal->behind("a"), 1U);
  EXPECT_EQ(world.read("b").records[2].key.dimensions.at("n"), "2");
  EXPECT_EQ(world.journal->read("c", 1).error().kind, Kind::not_found);
}

TEST(StoredJournal, StartsNewReadersAtTheEndAndRemovesFormerOnes) {
  JournalWorld world;
  world.append(0, 4);
  world.settings.journal.readers = {"b", "c"};
  world.restart();
  world.append(4, 2);
  EXPECT_EQ(world.values("c"), (std::vector<double>{4, 5}));
  EXPECT_EQ(world.values("b").size(), 6U);
  EXPECT_EQ(world.journal->read("a", 1).error().kind, Kind::not_found);
}

TEST(StoredJournal, CountsPointsLostBeyondItsLimit) {
  JournalWorld world;
  world.settings.journal.points_max = 500;
  world.restart();
  for (int i = 0; i < 20; ++i) world.append(i * 100, 100);
  const JournalPage page = world.read("a", 10);
  EXPECT_EQ(page.lost, 1500U);
  EXPECT_EQ(page.records.front().sample.sum, 1500);
  ASSERT_OK(world.journal->advance("a", page.position));
  EXPECT_EQ(world.read("a", 10).lost, 0U);
}

TEST(StoredJournal, DoesNotCallAPageOfRemovedMetricsEmpty) {
  JournalWorld world;
  world.append(0, 4);
  ASSERT_OK(world.metrics->retire(from_milliseconds(1000) + 456 * 24h));
  const JournalPage page = world.read("a");
  EXPECT_TRUE(page.records.empty());
  EXPECT_EQ(page.lost, 0U);
  EXPECT_FALSE(page.empty);
  ASSERT_OK(world.journal->advance("a", page.position));
  EXPECT_TRUE(world.read("a").empty);
}

TEST(StoredJournal, AssignsNoPointsOfARemovedMetricToALaterOne) {
  JournalWorld world;
  const Instant later = from_milliseconds(1000) + 456 * 24h;
  world.append(0, 4);
  ASSERT_OK(world.metrics->retire(later));
  world.restart();
  for (const char* name : {"x", "y", "z"})
    ASSERT_OK(world.metrics->append({{{"eu-west-1", "Later", name, {}}, sample_of(later, 9)}}));
  const JournalPage page = world.read("a");
  EXPECT_EQ(page.records.size(), 3U);
  for (const MetricRecord& record : page.records) EXPECT_EQ(record.sample.at, later);
}

TEST(StoredJournal, ExcludesMetricsThatAreNotWanted) {
  JournalWorld world;
  world.settings.journal.wanted = [](const MetricKey& key) { return key.name_space != "Received"; };
  world.restart();
  ASSERT_OK(world.metrics->append(
      {{{"eu-west-1", "Received", "m", {}}, sample_of(from_milliseconds(1), 1)},
       {{"eu-west-1", "Custom", "m", {}}, sample_of(from_milliseconds(1), 2)}}));
  EXPECT_EQ(world.values("a"), (std::vector<double>{2}));
  EXPECT_EQ(world.metrics->list("eu-west-1", "Received", "")->size(), 1U) << "they are stored";
}

TEST(StoredJournal, IsAbsentWithoutReaders) {
  JournalWorld world;
  world.append(0, 4);
  world.settings.journal.readers = {};
  world.restart();
  EXPECT_EQ(world.journal, nullptr);
  world.append(4, 4);
}

TEST(StoredJournal, AddsARepeatedBatchOnce) {
  JournalWorld world;
  const std::vector<MetricRecord> records{
      {{"eu-west-1", "Custom", "m", {}}, sample_of(from_milliseconds(1), 1)}};
  ASSERT_OK(world.metrics->append_batch("agent", 1, records));
  ASSERT_OK(world.metrics->append_batch("agent", 1, records));
  EXPECT_EQ(world.values("a").size(), 1U);
}

}  // namespace
}  // namespace trainyard::observe
