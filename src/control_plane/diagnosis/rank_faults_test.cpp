#include "diagnosis/rank_faults.hpp"

#include <gtest/gtest.h>

#include "base/activity_table.hpp"

namespace trainyard::diagnosis {
namespace {

RankState outside(uint32_t rank, uint64_t completed, Duration unchanged, Duration idle = 1h) {
  RankState state{.host = rank / 2, .calls = {}, .host_idle = idle};
  state.calls.rank = state.calls.group_rank = rank;
  state.calls.group_ranks = 4;
  state.calls.completed = completed;
  state.calls.unchanged = unchanged;
  return state;
}

RankState inside(uint32_t rank, uint64_t completed, Duration unchanged,
                 CallKind kind = CallKind::allreduce, uint64_t label = 7) {
  RankState state = outside(rank, completed, unchanged);
  state.calls.kind = uint8_t(kind);
  state.calls.bytes = 4 << 20;
  state.calls.label = label;
  return state;
}

// Formats the kinds and ranks of the faults: "StuckRank 3".
std::string found(const std::vector<RankState>& ranks, Duration longest_pause = 0ms) {
  std::string text;
  for (const RankFault& fault : waiting_faults(ranks, longest_pause))
    text += (text.empty() ? "" : ", ") + std::string(to_string(fault.kind)) + " " +
            std::to_string(fault.rank);
  return text;
}

TEST(WaitingFaults, NameAStuckRankWithItsHostAndCall) {
  const auto faults = waiting_faults(std::vector{inside(0, 811, 12s), inside(1, 811, 12s),
                                                 inside(2, 811, 12s), outside(3, 811, 12'500ms)},
                                     0ms);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].host, 1u);
  EXPECT_EQ(faults[0].text,
            "rank 3 on algo-2 seems to be stuck: it has not begun collective 812 for 12 s, and 3 "
            "ranks wait for it in allreduce of 4.0 MiB");
}

TEST(WaitingFaults, NameOneOfTwoRanks) {
  EXPECT_EQ(found({inside(0, 50, 9s), outside(1, 50, 9s)}), "StuckRank 1");
}

TEST(WaitingFaults, NameTwoStuckRanksOfFour) {
  EXPECT_EQ(found({inside(0, 50, 9s), outside(1, 50, 9s), outside(2, 50, 9s), inside(3, 50, 9s)}),
            "StuckRank 1, StuckRank 2");
}

TEST(WaitingFaults, NameAStuckRankThatOthersHaveOvertaken) {
  // The root of a broadcast has sent its bytes and computes; rank 2 did not enter the call.
  EXPECT_EQ(found({outside(0, 51, 9s), inside(1, 50, 9s), outside(2, 50, 9s), inside(3, 50, 9s)}),
            "StuckRank 2");
}

TEST(WaitingFaults, DescribeNamedTensorsWithoutANumber) {
  const auto faults = waiting_faults(
      std::vector{inside(0, 50, 9s, CallKind::named_tensors, 0), outside(1, 50, 9s)}, 0ms);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].text.find("it has submitted no tensor for 9 s, and 1 rank waits for it"),
            std::string::npos)
      << faults[0].text;
}

struct Fine {
  const char* name;
  std::vector<RankState> ranks;
  Duration longest_pause{};
};

TEST(WaitingFaults, AreNotFoundInNormalPauses) {
  const Fine fine[] = {
      {"no ranks", {}},
      {"one rank", {inside(0, 50, 1h)}},
      {"all compute", {outside(0, 50, 1h), outside(1, 50, 1h)}},
      {"all are in one call, which takes long", {inside(0, 50, 30s), inside(1, 50, 30s)}},
      {"a short wait", {inside(0, 50, 7s), outside(1, 50, 9s)}},
      {"late, but others have just begun to wait", {inside(0, 50, 1s), outside(1, 50, 30s)}},
      {"rank 1 writes a checkpoint, which uses its processors",
       {inside(0, 50, 60s), outside(1, 50, 60s, 0s)}},
      {"rank 1 writes checkpoints to a slow disk as long as the last one",
       {inside(0, 50, 60s), outside(1, 50, 60s)},
       55s},
      {"start: the first batch is loaded", {inside(0, 9, 60s), outside(1, 9, 60s)}},
      {"one rank came early",
       {inside(0, 50, 60s), outside(1, 50, 60s), outside(2, 50, 60s), outside(3, 50, 60s)}},
      {"the others are behind in other calls", {inside(0, 50, 9s), outside(1, 51, 9s)}},
      {"a reader saw fields of two calls",
       {inside(0, 50, 1s), inside(1, 50, 1s, CallKind::broadcast, 8)}},
  };
  for (const Fine& each : fine) EXPECT_EQ(found(each.ranks, each.longest_pause), "") << each.name;
}

TEST(WaitingFaults, NameABusyRankAfterALongPause) {
  EXPECT_EQ(found({inside(0, 50, 91s), outside(1, 50, 91s, 0s)}), "StuckRank 1");
  EXPECT_EQ(found({inside(0, 3, 91s), outside(1, 3, 91s)}), "StuckRank 1")
      << "also during the first calls";
  EXPECT_EQ(found({inside(0, 50, 200s), outside(1, 50, 200s)}, 60s), "StuckRank 1");
  EXPECT_EQ(found({inside(0, 50, 30min), outside(1, 50, 30min)}, 20h), "StuckRank 1")
      << "the longest pause that counts is limited";
}

TEST(WaitingFaults, NameARankThatStopsInsideACall) {
  RankState stopped = inside(1, 50, 9s);
  stopped.calls.since_beat = 7s;
  EXPECT_EQ(found({inside(0, 50, 9s), stopped}), "StoppedRank 1");
  stopped.calls.unchanged = 1s;
  EXPECT_EQ(found({inside(0, 50, 9s), stopped}), "") << "it has just begun its call";
  stopped.calls.unchanged = 9s;
  RankState other = stopped;
  other.calls.rank = 0;
  EXPECT_EQ(found({other, stopped}), "") << "no rank gives a sign of life";
}

TEST(WaitingFaults, AreNotFoundInAKilledGroup) {
  RankState killed = inside(0, 50, 1h);
  killed.calls.since_beat = 1h;
  EXPECT_EQ(found({killed, outside(1, 50, 1h)}), "");
  EXPECT_EQ(present_pause(std::vector{killed, outside(1, 50, 1h)}), std::nullopt);
  EXPECT_EQ(found({killed, outside(1, 50, 9s), inside(2, 50, 9s)}), "StoppedRank 0")
      << "another rank is alive";
}

TEST(WaitingFaults, NameARankThatCallsInAnotherOrder) {
  const auto faults = waiting_faults(
      std::vector{inside(0, 50, 4s), inside(1, 50, 4s, CallKind::broadcast, 8), inside(2, 50, 4s)},
      0ms);
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, FaultKind::other_call);
  EXPECT_EQ(faults[0].text,
            "rank 1 on algo-1 calls collectives in a different order: its collective 51 is "
            "broadcast of 4.0 MiB, that of 2 other ranks is allreduce of 4.0 MiB");
  EXPECT_EQ(found({inside(0, 50, 4s), inside(1, 50, 4s, CallKind::broadcast, 3)}), "OtherCall 1")
      << "of two ranks, the later one";
  EXPECT_EQ(found({inside(0, 50, 4s), inside(1, 51, 4s, CallKind::broadcast, 3)}), "")
      << "the calls have different numbers";
}

TEST(WaitingFaults, NameALimitedNumberOfRanks) {
  std::vector<RankState> ranks;
  for (uint32_t rank = 0; rank < 100; ++rank)
    ranks.push_back(rank % 3 == 0 ? outside(rank, 50, 20s) : inside(rank, 50, 20s));
  EXPECT_EQ(waiting_faults(ranks, 0ms).size(), kFaultsMax);
}

TEST(PresentPause, IsTheTimeThatOthersHaveWaited) {
  EXPECT_EQ(present_pause(std::vector{inside(0, 50, 7s), outside(1, 50, 9s)}), Duration(7s));
  EXPECT_EQ(present_pause(std::vector{inside(0, 50, 7s), inside(1, 50, 9s)}), std::nullopt);
  EXPECT_EQ(present_pause(std::vector{outside(0, 50, 7s), outside(1, 50, 9s)}), std::nullopt);
  EXPECT_EQ(present_pause({}), std::nullopt);
}

RankRate rate(uint32_t rank, double outside, double inside, double loading = 0) {
  return {.host = rank / 2,
          .rank = rank,
          .group_rank = rank,
          .inside = inside,
          .outside = outside,
          .loading = loading};
}

std::string slow(const std::vector<RankRate>& ranks) {
  std::string text;
  for (const RankFault& fault : slow_faults(ranks))
    text += (text.empty() ? "" : ", ") + std::string(to_string(fault.kind)) + " " +
            std::to_string(fault.rank) + (fault.peer ? ">" + std::to_string(*fault.peer) : "");
  return text;
}

TEST(SlowFaults, NameTheSlowRank) {
  const auto faults = slow_faults(std::vector{rate(0, 0.10, 0.05), rate(1, 0.10, 0.05),
                                              rate(2, 0.14, 0.01), rate(3, 0.11, 0.04)});
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].rank, 2u);
  EXPECT_EQ(faults[0].text,
            "rank 2 on algo-2 is slow: between collectives the rank takes 1.4 times as long as the "
            "median");
  EXPECT_EQ(slow({rate(0, 0.10, 0.05), rate(1, 0.14, 0.01)}), "SlowRank 1") << "one of two ranks";
}

TEST(SlowFaults, AreNotFoundInNormalDifferences) {
  EXPECT_EQ(slow({}), "");
  EXPECT_EQ(slow({rate(0, 1, 1)}), "");
  EXPECT_EQ(slow({rate(0, 0, 0), rate(1, 0, 0)}), "");
  EXPECT_EQ(slow({rate(0, 0.10, 0.05), rate(1, 0.12, 0.03)}), "") << "the difference is small";
  EXPECT_EQ(slow({rate(0, 0.001, 0.1), rate(1, 0.003, 0.1)}), "") << "the effect is negligible";
  EXPECT_EQ(slow({rate(0, 0.10, 0.05), rate(1, 0.10, 0.05), rate(2, 0.05, 0.10)}), "")
      << "one rank is fast";
}

TEST(SlowFaults, NameTheSlowLoader) {
  EXPECT_EQ(slow({rate(0, 0.10, 0.05, 0.01), rate(1, 0.15, 0.0, 0.05)}), "SlowLoader 1");
  EXPECT_EQ(slow({rate(0, 0.10, 0.05, 0.01), rate(1, 0.15, 0.0, 0.02)}), "SlowRank 1");
}

// A ring of ranks, whose links take 100 MB/s.
std::vector<RankRate> ring(uint32_t size) {
  std::vector<RankRate> ranks;
  for (uint32_t rank = 0; rank < size; ++rank) {
    ranks.push_back(rate(rank, 0.1, 0.1));
    ranks.back().links = {{(rank + 1) % size, 0.01, 1e6}};
  }
  return ranks;
}

TEST(SlowFaults, NameTheSlowLink) {
  auto ranks = ring(4);
  EXPECT_EQ(slow(ranks), "");
  ranks[1].links[0] = {2, 0.09, 1 << 20};
  EXPECT_EQ(slow(ranks), "SlowLink 1>2");
  EXPECT_EQ(slow_faults(ranks)[0].text,
            "the link from rank 1 on algo-1 to rank 2 on algo-2 is slow: it takes 11.1 MiB/s, the "
            "median link 95.4 MiB/s, and it is busy 45% of the time");
  ranks[3].links[0].busy = 0;
  EXPECT_EQ(slow(ranks), "SlowLink 1>2") << "the link of rank 3 is too fast for the kernel's clock";
  ranks[2].outside = 0.2;
  EXPECT_EQ(slow(ranks), "SlowRank 2") << "it reads late, so the link to it is busy";
  auto two = ring(2);
  two[0].links[0].busy = 0.1;
  EXPECT_EQ(slow(two), "SlowLink 0>1") << "compared with the other direction";
}

TEST(SlowFaults, DoNotNameLinksInNormalNetworks) {
  auto ranks = ring(8);
  for (RankRate& each : ranks) each.links[0].busy = 0.1;
  EXPECT_EQ(slow(ranks), "") << "the network is slow everywhere";
  ranks = ring(8);
  for (const size_t rank : {1, 4, 6}) ranks[rank].links[0].busy = 0.1;
  EXPECT_EQ(slow(ranks), "") << "links between machines are slower than those on one";
  ranks = ring(8);
  ranks[1].links[0] = {2, 0.02, 1e5};
  EXPECT_EQ(slow(ranks), "") << "of no consequence";
  ranks[1].links[0] = {2, 0.15, 1e3};
  EXPECT_EQ(slow(ranks), "") << "small messages show the latency of a link";
  ranks = ring(4);
  for (RankRate& each : ranks) each.links.clear();
  ranks[0].links = {{1, 0.15, 1e6}};
  EXPECT_EQ(slow(ranks), "") << "only the root of broadcasts sends";
  ranks[0].links = {{99, 0.15, 1e6}, {1, 0, 0}};
  EXPECT_EQ(slow(ranks), "") << "the peer is not a rank of the group";
}

}  // namespace
}  // namespace trainyard::diagnosis
