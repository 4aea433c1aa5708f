// Tests records of the API layer: changes are durable before the answer, conditional, and replayed.
#include "control/testing/test_cluster.hpp"

namespace trainyard::control {
namespace {

using test::TestCluster;

Result<std::shared_ptr<const domain::Records>> change(TestCluster& cluster,
                                                      std::vector<domain::RecordWrite> writes,
                                                      uint64_t expected) {
  Result<std::shared_ptr<const domain::Records>> result = internal("not answered");
  cluster.control->change_records({std::move(writes), expected},
                                  [&](auto answer) { result = answer; });
  cluster.run();
  return result;
}

domain::RecordWrite user(const std::string& name, Json document) {
  return {{"user", name}, std::move(document)};
}

TEST(RecordChanges, SurviveACrash) {
  TestCluster cluster;
  ASSERT_TRUE(change(cluster, {user("ann", {{"n", 1}}), user("bob", Json::object())}, 0));
  ASSERT_TRUE(change(cluster, {user("ann", {{"n", 2}}), {{"user", "bob"}, std::nullopt}}, 1));
  cluster.restart();
  const auto records = cluster.control->records();
  ASSERT_EQ(records->all.size(), 1u);
  EXPECT_EQ(records->all.at({"user", "ann"})->document, (Json{{"n", 2}}));
  EXPECT_EQ(records->all.at({"user", "ann"})->revision, 2u);
}

TEST(RecordChanges, FailAfterAnotherChange) {
  TestCluster cluster;
  Result<std::shared_ptr<const domain::Records>> first = internal(""), second = internal("");
  cluster.control->change_records({{user("ann", {{"n", 1}})}, 0},
                                  [&](auto answer) { first = answer; });
  cluster.control->change_records({{user("ann", {{"n", 2}})}, 0},
                                  [&](auto answer) { second = answer; });
  cluster.run();
  EXPECT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, Kind::conflict);
  EXPECT_EQ(cluster.control->records()->all.at({"user", "ann"})->document, (Json{{"n", 1}}));
  EXPECT_EQ(change(cluster, {user("", Json::object())}, 1).error().kind, Kind::invalid);
  EXPECT_EQ(cluster.control->records()->version, 1u) << "failed requests change nothing";
}

TEST(RecordChanges, AreReplayed) {
  TestCluster cluster;
  ASSERT_TRUE(change(cluster, {user("ann", {{"n", 1}})}, 0));
  cluster.restart();
  ASSERT_TRUE(change(cluster, {user("ann", {{"n", 2}}), user("bob", Json::object())}, 0));
  ASSERT_TRUE(change(cluster, {{{"user", "bob"}, std::nullopt}}, 1));
  test::Replay replay;
  const auto replayed = replay.run(*cluster.ledger);
  ASSERT_TRUE(replayed) << replayed.error().message;
  const auto kept = cluster.ledger->records();
  ASSERT_EQ(replay.records.all.size(), kept->all.size());
  for (const auto& [key, record] : kept->all) {
    EXPECT_EQ(replay.records.all.at(key)->document, record->document);
    EXPECT_EQ(replay.records.all.at(key)->revision, record->revision);
  }
}

}  // namespace
}  // namespace trainyard::control
