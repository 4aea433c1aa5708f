#include "diagnosis/rank_watch.hpp"

#include <gtest/gtest.h>

#include "base/activity_table.hpp"

namespace trainyard::diagnosis {
namespace {

// Simulates the reports of a job with one rank on each of four hosts.
class RankWatchTest : public testing::Test {
 protected:
  static constexpr uint32_t kRanks = 4;
  RankWatchTest() {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      RankState& state = ranks.emplace_back();
      state.host = rank;
      state.host_idle = 1h;
      state.calls.rank = state.calls.group_rank = rank;
      state.calls.group = 9;
      state.calls.group_ranks = kRanks;
      state.calls.completed = 100;
    }
  }

  // Lets time pass while the ranks work: rank r takes outside[r] ms of each cycle of `cycle` ms.
  void work(Duration time, std::vector<int64_t> outside_ms, int64_t cycle_ms = 100) {
    for (Duration done{}; done < time; done += 2s) {
      now += 2s;
      const auto calls = uint64_t(2'000 / cycle_ms);
      for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
        wire::RankCalls& each = ranks[rank].calls;
        each.completed += calls;
        each.outside_us += calls * uint64_t(outside_ms[rank]) * 1000;
        each.inside_us += calls * uint64_t(cycle_ms - outside_ms[rank]) * 1000;
        each.unchanged = 0ms;
        each.kind = uint8_t(CallKind::allreduce);
      }
      update();
    }
  }

  // Lets time pass while all ranks wait for `late`.
  void wait_for(uint32_t late, Duration time) {
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      ranks[rank].calls.kind = rank == late ? 0 : uint8_t(CallKind::allreduce);
      ranks[rank].calls.unchanged = 0ms;
    }
    for (Duration done{}; done < time; done += 2s) {
      now += 2s;
      for (RankState& each : ranks) each.calls.unchanged += 2s;
      update();
    }
  }

  void update() {
    for (const FaultNews& each : watch.update(ranks, now))
      news += (news.empty() ? "" : ", ") + std::string(each.begins ? "" : "end of ") +
              std::string(to_string(each.fault.kind)) + " " + std::to_string(each.fault.rank);
  }
  std::string take_news() { return std::exchange(news, ""); }

  RankWatch watch;
  std::vector<RankState> ranks;
  std::chrono::nanoseconds now = 1h;
  std::string news;
};

TEST_F(RankWatchTest, ReportsAStuckRankOnceAndWithin15Seconds) {
  work(20s, {50, 50, 50, 50});
  EXPECT_EQ(take_news(), "");
  const auto began = now;
  wait_for(2, 10s);
  EXPECT_EQ(take_news(), "StuckRank 2");
  EXPECT_LE(now - began, std::chrono::nanoseconds(10s));
  ASSERT_EQ(watch.faults().size(), 1u);
  EXPECT_EQ(watch.faults()[0].host, 2u);
  wait_for(2, 10s);
  EXPECT_EQ(take_news(), "end of StuckRank 2, StuckRank 2") << "the test begins a second wait";
  work(4s, {50, 50, 50, 50});
  EXPECT_EQ(take_news(), "end of StuckRank 2");
  EXPECT_TRUE(watch.faults().empty());
}

TEST_F(RankWatchTest, ReportsASlowRankWithin15Seconds) {
  work(20s, {50, 50, 50, 50});
  work(14s, {50, 70, 50, 50});
  EXPECT_EQ(take_news(), "SlowRank 1");
  work(20s, {50, 70, 50, 50});
  EXPECT_EQ(take_news(), "") << "it was reported already";
  work(20s, {50, 50, 50, 50});
  EXPECT_EQ(take_news(), "end of SlowRank 1");
}

TEST_F(RankWatchTest, ReportsNoSlightlyUnevenRanks) {
  work(60s, {50, 60, 55, 45});
  EXPECT_EQ(take_news(), "");
}

TEST_F(RankWatchTest, ReportsNoFaultIfADifferentRankIsSlowInEachWindow) {
  for (int i = 0; i < 10; ++i) {
    work(4s, {75, 50, 50, 50});
    work(4s, {50, 50, 75, 50});
  }
  EXPECT_EQ(take_news(), "");
}

TEST_F(RankWatchTest, ReportsNoBusyRankThatWritesACheckpoint) {
  work(20s, {50, 50, 50, 50});
  ranks[0].host_idle = 0s;
  wait_for(0, 60s);
  ranks[0].calls.outside_us += 60'000'000;
  for (uint32_t rank = 1; rank < kRanks; ++rank) ranks[rank].calls.inside_us += 60'000'000;
  work(60s, {50, 50, 50, 50});
  EXPECT_EQ(take_news(), "") << "it is not reported as a slow rank, either";
}

TEST_F(RankWatchTest, AllowsPausesLikeEarlierOnesThatEnded) {
  work(20s, {50, 50, 50, 50});
  wait_for(0, 30s);
  EXPECT_EQ(take_news(), "StuckRank 0");
  work(4s, {50, 50, 50, 50});
  EXPECT_EQ(take_news(), "end of StuckRank 0");
  wait_for(0, 40s);
  EXPECT_EQ(take_news(), "") << "a pause may take twice as long as an earlier one";
  wait_for(0, 90s);
  EXPECT_EQ(take_news(), "StuckRank 0");
}

TEST_F(RankWatchTest, ReportsNoFaultsOfAnEndedGroup) {
  work(20s, {50, 50, 50, 50});
  wait_for(2, 10s);
  EXPECT_EQ(take_news(), "StuckRank 2");
  ranks.clear();
  update();
  EXPECT_EQ(take_news(), "end of StuckRank 2");
}

TEST_F(RankWatchTest, ComparesElasticRanksInTheirNewGroup) {
  work(20s, {50, 50, 50, 50});
  // Rank 3 was killed inside a call, and the others form a group of three.
  ranks[3].calls.kind = uint8_t(CallKind::allreduce);
  ranks[3].calls.unchanged = ranks[3].calls.since_beat = 1h;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ranks[rank].calls = {.rank = rank, .group = 10, .group_rank = rank, .group_ranks = 3};
    ranks[rank].calls.completed = 20;
  }
  for (int i = 0; i < 10; ++i) {
    now += 2s;
    update();
  }
  EXPECT_EQ(take_news(), "");
  ranks.pop_back();
  work(20s, {50, 50, 50});
  wait_for(1, 10s);
  EXPECT_EQ(take_news(), "StuckRank 1");
}

TEST_F(RankWatchTest, KeepsFaultsWhileAHostIsNotConnected) {
  work(20s, {50, 50, 50, 50});
  const RankState gone = ranks.back();
  ranks.pop_back();
  work(20s, {50, 50, 50});
  ranks.push_back(gone);
  ranks.back().calls.completed = ranks[0].calls.completed;
  work(20s, {50, 50, 50, 50});
  EXPECT_EQ(take_news(), "");
}

TEST_F(RankWatchTest, LimitsTheFaultsOfAJob) {
  std::vector<RankState> all;
  for (uint64_t group = 0; group < kGroupsMax; ++group)
    for (RankState each : ranks) {
      each.calls.group = group;
      each.calls.rank += uint32_t(group) * kRanks;
      each.calls.unchanged = 1h;
      each.calls.kind = each.calls.group_rank < 2 ? 0 : uint8_t(CallKind::allreduce);
      all.push_back(each);
    }
  EXPECT_EQ(watch.update(all, 1s).size(), kPresentMax);
  EXPECT_EQ(watch.faults().size(), kPresentMax);
  EXPECT_TRUE(watch.update(all, 3s).empty()) << "they have been reported";
}

TEST_F(RankWatchTest, AcceptsImpossibleNumbers) {
  work(20s, {50, 50, 50, 50});
  for (RankState& each : ranks) {
    each.calls.completed = UINT64_MAX;
    each.calls.outside_us = each.calls.rank % 2 == 0 ? UINT64_MAX : 0;
    each.calls.inside_us = 0;
    each.calls.links = {{UINT32_MAX, UINT64_MAX}, {0, UINT64_MAX}};
    each.calls.kind = 255;
  }
  for (int i = 0; i < 10; ++i) {
    now += 2s;
    update();
  }
  for (uint64_t group = 0; group < 1'000; ++group) {
    for (RankState& each : ranks) each.calls.group = group;
    now += 1s;
    update();
  }
  SUCCEED();
}

}  // namespace
}  // namespace trainyard::diagnosis
