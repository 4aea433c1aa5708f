// Tests documents of front ends: durable before answered, changed on condition, replayed.
#include "control/test_yard.hpp"

namespace trainyard::control {
namespace {

using test::Yard;

Result<std::shared_ptr<const domain::Records>> change(Yard& yard,
                                                      std::vector<domain::RecordWrite> writes,
                                                      uint64_t expected) {
  Result<std::shared_ptr<const domain::Records>> result = internal("not answered");
  yard.control->change_records({std::move(writes), expected},
                               [&](auto answer) { result = answer; });
  yard.run();
  return result;
}

domain::RecordWrite user(const std::string& name, Json document) {
  return {{"user", name}, std::move(document)};
}

TEST(RecordChanges, SurviveACrash) {
  Yard yard;
  ASSERT_TRUE(change(yard, {user("ann", {{"n", 1}}), user("bob", Json::object())}, 0));
  ASSERT_TRUE(change(yard, {user("ann", {{"n", 2}}), {{"user", "bob"}, std::nullopt}}, 1));
  yard.restart();
  const auto records = yard.control->records();
  ASSERT_EQ(records->all.size(), 1u);
  EXPECT_EQ(records->all.at({"user", "ann"})->document, (Json{{"n", 2}}));
  EXPECT_EQ(records->all.at({"user", "ann"})->revision, 2u);
}

TEST(RecordChanges, AreRefusedWhenOthersCameFirst) {
  Yard yard;
  Result<std::shared_ptr<const domain::Records>> first = internal(""), second = internal("");
  yard.control->change_records({{user("ann", {{"n", 1}})}, 0},
                               [&](auto answer) { first = answer; });
  yard.control->change_records({{user("ann", {{"n", 2}})}, 0},
                               [&](auto answer) { second = answer; });
  yard.run();
  EXPECT_TRUE(first);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, Kind::conflict);
  EXPECT_EQ(yard.control->records()->all.at({"user", "ann"})->document, (Json{{"n", 1}}));
  EXPECT_EQ(change(yard, {user("", Json::object())}, 1).error().kind, Kind::invalid);
  EXPECT_EQ(yard.control->records()->version, 1u) << "what was refused changes nothing";
}

TEST(RecordChanges, AreReplayed) {
  Yard yard;
  ASSERT_TRUE(change(yard, {user("ann", {{"n", 1}})}, 0));
  yard.restart();
  ASSERT_TRUE(change(yard, {user("ann", {{"n", 2}}), user("bob", Json::object())}, 0));
  ASSERT_TRUE(change(yard, {{{"user", "bob"}, std::nullopt}}, 1));
  test::Replay replay;
  const auto replayed = replay.run(*yard.ledger);
  ASSERT_TRUE(replayed) << replayed.error().message;
  const auto kept = yard.ledger->records();
  ASSERT_EQ(replay.records.all.size(), kept->all.size());
  for (const auto& [key, record] : kept->all) {
    EXPECT_EQ(replay.records.all.at(key)->document, record->document);
    EXPECT_EQ(replay.records.all.at(key)->revision, record->revision);
  }
}

}  // namespace
}  // namespace trainyard::control
