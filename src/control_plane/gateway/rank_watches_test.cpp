#include "gateway/rank_watches.hpp"

#include <gtest/gtest.h>

#include "base/activity_table.hpp"

namespace trainyard::gateway {
namespace {

wire::RankCalls calls_of_rank(uint32_t rank, CallKind kind, Duration unchanged) {
  wire::RankCalls calls{.rank = rank, .group = 9, .group_rank = rank, .group_ranks = 2};
  calls.completed = 50;
  calls.kind = uint8_t(kind);
  calls.unchanged = unchanged;
  return calls;
}

AgentSession session_of(domain::HostIndex host, const wire::RankCalls& calls) {
  AgentSession session;
  session.host = host;
  session.activity = wire::Activity{{}, {}, {calls}, 1h};
  session.activity_at = 100s;
  return session;
}

TEST(RankWatches, NameTheRankThatOthersWaitFor) {
  RankWatches watches;
  const domain::AttemptId attempt{1, 1};
  const auto waits = session_of(0, calls_of_rank(0, CallKind::barrier, 7s));
  const auto stuck = session_of(1, calls_of_rank(1, CallKind::none, 7s));
  const auto news_at = [&](std::chrono::nanoseconds now) {
    std::vector<diagnosis::RankState> ranks;
    add_ranks(waits, now, ranks);
    add_ranks(stuck, now, ranks);
    return watches.update(attempt, ranks, now);
  };
  EXPECT_TRUE(news_at(100s).empty());
  const auto news = news_at(102s);
  ASSERT_EQ(news.size(), 1u) << "the time since the reports counts";
  EXPECT_EQ(news[0].fault.rank, 1u);
  EXPECT_EQ(
      line_of(news[0]),
      "rank 1 on algo-2 seems to be stuck: it has not begun collective 51 for 9 s, and 1 rank "
      "waits for it in barrier");
  EXPECT_EQ(line_of({news[0].fault, false, 30s}).substr(0, 18), "ended after 30 s: ");
  EXPECT_EQ(watches.faults(1).size(), 1u);
  EXPECT_TRUE(watches.faults(2).empty()) << "another job";
  EXPECT_TRUE(news_at(104s).empty()) << "it was announced already";
  watches.forget(1);
  EXPECT_TRUE(watches.faults(1).empty());
}

TEST(RankWatches, BeginAgainWithEachAttempt) {
  RankWatches watches;
  const std::vector<diagnosis::RankState> ranks{{0, calls_of_rank(0, CallKind::barrier, 9s), 1h},
                                                {1, calls_of_rank(1, CallKind::none, 9s), 1h}};
  EXPECT_EQ(watches.update({1, 1}, ranks, 1s).size(), 1u);
  EXPECT_EQ(watches.update({1, 1}, ranks, 3s).size(), 0u);
  const auto news = watches.update({1, 2}, ranks, 5s);
  ASSERT_EQ(news.size(), 2u);
  EXPECT_FALSE(news[0].begins) << "the fault of the earlier attempt has ended";
  EXPECT_EQ(news[0].lasted, 4s);
  EXPECT_TRUE(news[1].begins);
}

TEST(RankWatches, EndTheFaultsOfAJobWithoutAgents) {
  RankWatches watches;
  const std::vector<diagnosis::RankState> ranks{{0, calls_of_rank(0, CallKind::barrier, 9s), 1h},
                                                {1, calls_of_rank(1, CallKind::none, 9s), 1h}};
  EXPECT_TRUE(watches.end(1, 1s).empty()) << "an unknown job";
  (void)watches.update({1, 1}, ranks, 1s);
  const auto news = watches.end(1, 8s);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_FALSE(news[0].begins);
  EXPECT_EQ(news[0].lasted, 7s);
  EXPECT_TRUE(watches.faults(1).empty());
  EXPECT_TRUE(watches.end(1, 9s).empty()) << "it was announced already";
}

TEST(RankWatches, ExamineManyRanksLessOften) {
  RankWatches watches;
  const domain::AttemptId attempt{1, 2};
  EXPECT_TRUE(watches.is_due(attempt, 1s));
  std::vector<diagnosis::RankState> ranks(kRanksInMillisecond - 1);
  (void)watches.update(attempt, ranks, 1s);
  EXPECT_TRUE(watches.is_due(attempt, 1s)) << "with few ranks, each report is examined";
  ranks.resize(500 * kRanksInMillisecond);
  (void)watches.update(attempt, ranks, 1s);
  EXPECT_FALSE(watches.is_due(attempt, 1'499ms));
  EXPECT_TRUE(watches.is_due(attempt, 1'500ms));
  EXPECT_TRUE(watches.is_due({1, 3}, 1s)) << "the next attempt";
  EXPECT_FALSE(watches.is_due({1, 1}, 1h)) << "an earlier one";
  EXPECT_TRUE(watches.is_due({2, 1}, 1s)) << "another job";
}

TEST(RankWatches, AnnounceALimitedNumberOfFaultsWithTheirEnds) {
  RankWatches watches;
  const std::vector<diagnosis::RankState> fault{{0, calls_of_rank(0, CallKind::barrier, 9s), 1h},
                                                {1, calls_of_rank(1, CallKind::none, 9s), 1h}};
  size_t begun = 0, ended = 0;
  for (int i = 0; i < 4'000; ++i)
    for (const auto& news :
         watches.update({1, 1}, i % 2 == 0 ? fault : std::vector<diagnosis::RankState>{},
                        std::chrono::seconds(i)))
      ++(news.begins ? begun : ended);
  EXPECT_EQ(begun, kAnnouncedFaultsMax);
  EXPECT_EQ(ended, kAnnouncedFaultsMax) << "each announced fault also ends";
  EXPECT_TRUE(watches.end(1, 1h).empty());
  EXPECT_TRUE(watches.update({1, 1}, fault, 2h).empty())
      << "agents that reconnect get no new limit";
  EXPECT_EQ(watches.update({1, 2}, fault, 3h).size(), 1u) << "the next attempt has its own limit";
}

TEST(CheckedActivity, HasOnlyPlausibleNumbers) {
  wire::RankCalls wild{.rank = 1, .group = 9, .group_rank = 1, .group_ranks = 2};
  wild.unchanged = Duration::max();
  wild.since_beat = Duration::min();
  wild.outside_us = UINT64_MAX;
  wild.links = std::vector<wire::LinkLoad>(100, {7, UINT64_MAX});
  wire::RankCalls alone = wild, beyond = wild, many = wild;
  alone.group_ranks = 1;
  beyond.group_rank = 2;
  many.group_ranks = UINT32_MAX;
  wire::Activity activity{Duration::max(), {}, {wild, alone, beyond, many}, Duration::min()};
  ASSERT_TRUE(check_activity(activity));
  EXPECT_EQ(activity.output, kActivityAgeMax);
  EXPECT_EQ(activity.idle, Duration(0s));
  ASSERT_EQ(activity.calls.size(), 1u);
  EXPECT_EQ(activity.calls[0].unchanged, kActivityAgeMax);
  EXPECT_EQ(activity.calls[0].since_beat, Duration(0s));
  EXPECT_LT(activity.calls[0].outside_us, UINT64_MAX);
  EXPECT_EQ(activity.calls[0].links.size(), kCallLinks);
  EXPECT_LT(activity.calls[0].links[0].busy_us, UINT64_MAX);

  activity.calls.resize(kActivitySlots + 1);
  EXPECT_FALSE(check_activity(activity));
}

}  // namespace
}  // namespace trainyard::gateway
