#include "collectives/transport/timeout.hpp"

#include <gtest/gtest.h>

#include <map>

namespace trainyard::collectives {
namespace {

constexpr Duration kLimit = 1000ms;
constexpr Duration kTick = 10ms;

// Simulates ranks that wait for each other and receive reports a tick later. Returns which rank
// each one blames, and when.
struct Blame {
  int guilty;
  Duration at;
  bool operator==(const Blame&) const = default;
};
std::map<int, Blame> play(int ranks, const std::map<int, std::vector<int>>& waits,
                          const std::map<int, Duration>& begins = {}) {
  const Timeout::Time start{};
  std::map<int, Timeout> waiting;
  std::map<int, Blame> blames;
  for (const auto& [rank, peers] : waits) {
    const Duration begin = begins.count(rank) ? begins.at(rank) : 0ms;
    waiting.emplace(rank, Timeout(rank, ranks, kLimit, start + begin));
  }
  for (Duration at = 0ms; at < 3 * kLimit; at += kTick) {
    std::map<int, int> said;
    for (auto& [rank, timeout] : waiting) {
      if (begins.count(rank) && at < begins.at(rank)) continue;
      if (const auto report = timeout.report(waits.at(rank), start + at)) said[rank] = *report;
      if (timeout.is_over(start + at) && !blames.count(rank))
        blames[rank] = {timeout.guilty(waits.at(rank), start + at), at};
    }
    for (auto& [rank, timeout] : waiting) {
      for (const auto& [from, guilty] : said) {
        if (from != rank) timeout.add_report(from, guilty, start + at);
      }
    }
  }
  return blames;
}

TEST(Timeout, RanksInAChainBlameItsEnd) {
  // A ring of 20 ranks, of which rank 7 is stuck.
  std::map<int, std::vector<int>> waits;
  for (int rank = 0; rank < 20; ++rank) {
    if (rank != 7) waits[rank] = {(rank + 19) % 20};
  }
  for (const auto& [rank, blame] : play(20, waits)) EXPECT_EQ(blame, (Blame{7, 1100ms})) << rank;
}

TEST(Timeout, AllBlameTheRankThatDoesNotWait) {
  const std::map<int, std::vector<int>> waits = {
      {0, {1, 2, 3, 4}}, {1, {0, 2, 3, 4}}, {3, {4, 2}}, {4, {0, 1, 3}}};
  for (const auto& [rank, blame] : play(5, waits)) EXPECT_EQ(blame, (Blame{2, 1100ms})) << rank;
}

TEST(Timeout, DoesNotBlameALateRankThatWaits) {
  const auto blames = play(3, {{0, {1}}, {1, {2}}}, {{1, 990ms}});
  EXPECT_EQ(blames.at(0), (Blame{2, 1100ms}));
  EXPECT_EQ(blames.at(1), (Blame{2, 2090ms}));
  // A rank that begins to wait too late is blamed.
  EXPECT_EQ(play(3, {{0, {1}}, {1, {2}}}, {{1, 1090ms}}).at(0).guilty, 1);
}

TEST(Timeout, BlamesARankThatStoppedReporting) {
  const Timeout::Time start{};
  Timeout timeout(0, 3, kLimit, start);
  timeout.add_report(1, 2, start + 500ms);
  const int one = 1;
  EXPECT_EQ(timeout.guilty(std::span(&one, 1), start + 1000ms), 2);
  EXPECT_EQ(timeout.guilty(std::span(&one, 1), start + 1100ms), 1);
}

TEST(Timeout, RanksThatWaitForEachOtherBlameOneThatTheyWaitFor) {
  const auto blames = play(2, {{0, {1}}, {1, {0}}});
  EXPECT_EQ(blames.at(0), (Blame{1, 1100ms}));
  EXPECT_EQ(blames.at(1), (Blame{0, 1100ms}));
  EXPECT_EQ(Timeout(1, 2, kLimit, {}).guilty({}, {}), 1);
}

TEST(Timeout, RestartsWithEachProgress) {
  const Timeout::Time start{};
  Timeout timeout(0, 2, kLimit, start);
  const int one = 1;
  EXPECT_FALSE(timeout.report(std::span(&one, 1), start + 49ms));
  timeout.moved(start + 49ms);
  EXPECT_FALSE(timeout.report(std::span(&one, 1), start + 98ms));
  EXPECT_EQ(timeout.report(std::span(&one, 1), start + 99ms), 1);
  EXPECT_FALSE(timeout.report(std::span(&one, 1), start + 140ms));
  EXPECT_TRUE(timeout.report(std::span(&one, 1), start + 149ms));
  EXPECT_FALSE(timeout.is_over(start + 1148ms));
  EXPECT_TRUE(timeout.is_over(start + 1149ms));
}

}  // namespace
}  // namespace trainyard::collectives
