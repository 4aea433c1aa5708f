#include "collectives/select.hpp"

#include <gtest/gtest.h>

namespace trainyard::collectives {
namespace {

using plan::Algorithm;
using plan::Operation;

const std::vector<int> kOneHost{0, 0, 0, 0};
const std::vector<int> kTwoOfTwo{0, 0, 1, 1};
const std::vector<int> kFourHosts{0, 1, 2, 3};

TEST(Table, HasAPlanThatExistsForEveryOperationAndSize) {
  for (const auto& hosts :
       {std::vector<int>{0}, std::vector<int>{0, 0}, kOneHost, kTwoOfTwo, kFourHosts}) {
    const Table table = Table::made_from({}, hosts);
    for (int i = 0; i <= int(Operation::barrier); ++i) {
      for (size_t bytes = 0; bytes < size_t{1} << 40; bytes = bytes * 3 + 1) {
        const Choice& choice = table.choose(Operation(i), bytes);
        EXPECT_TRUE(choice.algorithm == Algorithm::hierarchical ||
                    exists(choice.operation, choice.algorithm));
        EXPECT_FALSE(choice.reason.empty());
      }
    }
  }
}

TEST(Table, UsesFewLatenciesForSmallMessagesAndFewBytesForLargeOnes) {
  const Table local = Table::made_from({}, kOneHost);
  EXPECT_EQ(local.choose(Operation::allreduce, 1024).algorithm, Algorithm::one_shot);
  EXPECT_EQ(local.choose(Operation::allreduce, 25 << 20).algorithm, Algorithm::direct);
  const Table network = Table::made_from({}, kTwoOfTwo);
  EXPECT_EQ(network.choose(Operation::allreduce, 25 << 20).algorithm, Algorithm::hierarchical);
}

TEST(Table, UsesOneIterationForSmallMessagesOfRanksThatShareACore) {
  const std::vector<int> eight(8, 0);
  const auto chosen = [&](int ranks_per_core, size_t bytes) {
    Costs costs;
    costs.ranks_per_core = ranks_per_core;
    return Table::made_from(costs, eight).choose(Operation::allreduce, bytes).algorithm;
  };
  EXPECT_EQ(chosen(1, 1024), Algorithm::direct);
  EXPECT_EQ(chosen(4, 1024), Algorithm::one_shot);
  EXPECT_EQ(chosen(4, 8 << 10), Algorithm::one_shot);
  EXPECT_EQ(chosen(4, 64 << 10), Algorithm::direct);
}

TEST(Table, PrefersHierarchicalPlansIfHostsHaveManyRanks) {
  std::vector<int> hosts;
  for (int rank = 0; rank < 16; ++rank) hosts.push_back(rank / 8);
  const auto seconds = [&](Algorithm algorithm) {
    return modelled_seconds(Operation::allreduce, algorithm, 64 << 20, hosts, {});
  };
  EXPECT_LT(seconds(Algorithm::hierarchical), seconds(Algorithm::ring));
}

TEST(Table, UsesFewLatenciesBetweenManyHosts) {
  std::vector<int> hosts;
  for (int rank = 0; rank < 1024; ++rank) hosts.push_back(rank / 8);
  const Table table = Table::made_from({}, hosts);
  const Choice& small = table.choose(Operation::allreduce, 1 << 20);
  EXPECT_EQ(small.algorithm, Algorithm::hierarchical);
  EXPECT_EQ(small.between, Algorithm::halving_doubling);
  EXPECT_NE(small.reason.find("between the hosts halving_doubling"), std::string::npos)
      << small.reason;
}

TEST(Override, ReplacesTheSizesThatItNames) {
  Table table = Table::made_from({}, kFourHosts);
  const auto before = table.choose(Operation::allreduce, 1 << 30).algorithm;
  ASSERT_TRUE(
      table.override_with("allreduce=tree:0-64K,halving_doubling:64K-1M;broadcast=one_shot:0-"));
  EXPECT_EQ(table.choose(Operation::allreduce, 0).algorithm, Algorithm::tree);
  EXPECT_EQ(table.choose(Operation::allreduce, (64 << 10) - 1).algorithm, Algorithm::tree);
  EXPECT_EQ(table.choose(Operation::allreduce, 64 << 10).algorithm, Algorithm::halving_doubling);
  EXPECT_EQ(table.choose(Operation::allreduce, (1 << 20) - 1).algorithm,
            Algorithm::halving_doubling);
  EXPECT_EQ(table.choose(Operation::allreduce, 1 << 30).algorithm, before);
  EXPECT_EQ(table.choose(Operation::broadcast, 1 << 30).algorithm, Algorithm::one_shot);
  EXPECT_NE(table.text().find("allreduce=tree:0-64K  # requested"), std::string::npos)
      << table.text();
  ASSERT_TRUE(table.override_with("allreduce=direct/1M:8M-"));
  EXPECT_EQ(table.choose(Operation::allreduce, 8 << 20).chunk_bytes, size_t{1} << 20);
  // A row in the middle of another row keeps the parts before and after it.
  ASSERT_TRUE(table.override_with("allreduce=ring:100-200"));
  EXPECT_EQ(table.choose(Operation::allreduce, 99).algorithm, Algorithm::tree);
  EXPECT_EQ(table.choose(Operation::allreduce, 100).algorithm, Algorithm::ring);
  EXPECT_EQ(table.choose(Operation::allreduce, 200).algorithm, Algorithm::tree);
}

TEST(Override, IgnoresPlansBetweenHostsInAPartOnOneHost) {
  Table table = Table::made_from({}, kOneHost);
  const auto before = table.choose(Operation::allreduce, 0).algorithm;
  ASSERT_TRUE(table.override_with("allreduce=hierarchical:0-64K,halving_doubling:64K-",
                                  PlanScope::of_the_whole));
  EXPECT_EQ(table.choose(Operation::allreduce, 0).algorithm, before);
  EXPECT_EQ(table.choose(Operation::allreduce, 64 << 10).algorithm, Algorithm::halving_doubling);
  EXPECT_FALSE(table.override_with("allreduce=rings:0-", PlanScope::of_the_whole));
}

TEST(Override, RejectsInvalidTextsWithAnExplanation) {
  const struct {
    const char* text;
    const char* why;
  } rows[] = {{"allreduce", "write"},
              {"sum=ring:0-", "unknown operation"},
              {"allreduce=rings:0-", "unknown plan"},
              {"allreduce=hierarchical:0-", "one host"},
              {"gather=ring:0-", "unknown plan"},
              {"allreduce=ring", "PLAN:FROM-TO"},
              {"allreduce=ring:5-5", "ends before"},
              {"allreduce=ring:1X-2", "invalid size"},
              {"allreduce=ring/1X:1-2", "invalid size"},
              {"allreduce=ring:0-99999999999999999999", "invalid size"}};
  for (const auto& row : rows) {
    Table table = Table::made_from({}, kOneHost);
    const auto result = table.override_with(row.text);
    ASSERT_FALSE(result) << row.text;
    EXPECT_NE(result.error().message.find(row.why), std::string::npos) << result.error().message;
  }
}

}  // namespace
}  // namespace trainyard::collectives
