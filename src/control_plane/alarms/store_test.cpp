#include "alarms/store.hpp"

#include <gtest/gtest.h>

#include "alarms/dashboards.hpp"
#include "alarms/testing/plain_texts.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::alarms {
namespace {

constexpr Instant kStoredAt = Instant{Duration{1'763'632'020'000}};

Alarm alarm_named(const std::string& name) {
  Alarm alarm{.key = {"eu-west-1", name}, .configured = kStoredAt};
  alarm.settings.account = "123456789012";
  alarm.settings.rule = "TRUE";
  alarm.state = {State::ok, "reason", "{}", kStoredAt, kStoredAt};
  return alarm;
}

struct StoreWorld {
  observe::TemporaryDirectory directory;
  std::unique_ptr<AlarmStore> store = open();
  std::unique_ptr<AlarmStore> open() {
    auto opened = AlarmStore::open(directory.path());
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  void restart() {
    store.reset();
    store = open();
  }
  void change(Change change) {
    ASSERT_OK(store->change([&](const Alarms&) -> Result<Change> { return change; }));
  }
};

TEST(AlarmStore, KeepsAlarmsAfterARestart) {
  StoreWorld world;
  world.change({.stored = {alarm_named("a"), alarm_named("b")}});
  world.change({.removed = {{"eu-west-1", "b"}}});
  world.restart();
  const auto all = world.store->snapshot();
  ASSERT_EQ(all->size(), 1u);
  const Alarm& alarm = *all->begin()->second;
  const Alarm expected = alarm_named("a");
  EXPECT_EQ(alarm.key, expected.key);
  EXPECT_EQ(alarm.settings, expected.settings);
  EXPECT_EQ(alarm.state, expected.state);
  EXPECT_EQ(alarm.configured, expected.configured);
}

TEST(AlarmStore, ChangesNothingIfTheDecisionFails) {
  StoreWorld world;
  const auto failed =
      world.store->change([](const Alarms&) -> Result<Change> { return conflict("no"); });
  EXPECT_EQ(failed.error().kind, Kind::conflict);
  EXPECT_TRUE(world.store->snapshot()->empty());
}

TEST(AlarmStore, ReadsHistoryByPages) {
  StoreWorld world;
  Change change;
  for (int i = 0; i < 5; ++i)
    change.history.push_back({{"eu-west-1", i % 2 ? "odd" : "even"},
                              i == 4 ? AlarmKind::composite : AlarmKind::metric,
                              kStoredAt + i * Duration(1s),
                              i == 0 ? HistoryKind::configuration : HistoryKind::state,
                              std::to_string(i),
                              "{}"});
  world.change(change);
  const auto read = [&](HistoryQuery query) {
    query.region = query.region.empty() ? "eu-west-1" : query.region;
    std::string found;
    for (int pages = 0; pages < 10; ++pages) {
      const auto page = world.store->history(query);
      EXPECT_TRUE(page) << page.error().message;
      for (const auto& each : page->items) found += each.summary;
      if (page->last == 0) break;
      found += "/";
      query.after = page->last;
    }
    return found;
  };
  EXPECT_EQ(read({}), "43210");
  EXPECT_EQ(read({.count_max = 2}), "43/21/0");
  EXPECT_EQ(read({.oldest_first = true, .count_max = 2}), "01/23/4");
  EXPECT_EQ(read({.alarm = "odd"}), "31");
  EXPECT_EQ(read({.alarm_kinds = {AlarmKind::composite}}), "4");
  EXPECT_EQ(read({.alarm_kinds = {AlarmKind::metric}}), "3210");
  EXPECT_EQ(read({.kind = HistoryKind::configuration}), "0");
  EXPECT_EQ(read({.from = kStoredAt + 1s, .to = kStoredAt + 3s}), "321");
  EXPECT_EQ(read({.region = "us-east-1"}), "");
  ASSERT_OK(world.store->retire(kStoredAt + kHistoryTime + 3s));
  EXPECT_EQ(read({}), "43");
}

TEST(AlarmStore, LimitsTheHistoryOfAnAlarm) {
  StoreWorld world;
  Change change;
  for (int i = 0; i < kHistoryItemsMax + 10; ++i)
    change.history.push_back(
        {{"r", "a"}, AlarmKind::metric, kStoredAt, HistoryKind::state, "x", "{}"});
  change.history.push_back(
      {{"r", "b"}, AlarmKind::metric, kStoredAt, HistoryKind::state, "x", "{}"});
  world.change(change);
  const auto page = world.store->history({.region = "r", .count_max = 100'000});
  EXPECT_EQ(page->items.size(), size_t(kHistoryItemsMax) + 1);
}

TEST(AlarmStore, KeepsActionsUntilTheyEnd) {
  StoreWorld world;
  const auto action = [](const std::string& target, Instant due) {
    return PendingAction{
        .alarm = {"r", "a"}, .target = target, .message = "{}", .created = kStoredAt, .due = due};
  };
  world.change({.actions = {action("one", kStoredAt), action("two", kStoredAt + 5s),
                            action("one", kStoredAt)}});
  world.restart();
  const auto due = [&](Instant at) {
    auto found = world.store->due_actions(at, 10);
    EXPECT_TRUE(found) << found.error().message;
    return *found;
  };
  ASSERT_EQ(due(kStoredAt).size(), 1u) << "one action for each target";
  EXPECT_EQ(due(kStoredAt + 5s).size(), 2u);
  const PendingAction first = due(kStoredAt)[0];
  EXPECT_EQ(first.target, "one");
  EXPECT_EQ(first.created, kStoredAt);
  ASSERT_OK(world.store->retry_action(first.number, 1, kStoredAt + 1min));
  const PendingAction second = due(kStoredAt)[0];
  EXPECT_NE(second.number, first.number);
  ASSERT_OK(world.store->end_action(
      second.number,
      HistoryItem{{"r", "a"}, AlarmKind::metric, kStoredAt, HistoryKind::action, "done", "{}"}));
  EXPECT_TRUE(due(kStoredAt).empty());
  ASSERT_EQ(due(kStoredAt + 1min).size(), 2u);
  EXPECT_EQ(world.store->history({.region = "r"})->items[0].summary, "done");
}

TEST(AlarmStore, DropsActionsOnlyOfAlarmsWithManyPending) {
  observe::TemporaryDirectory directory;
  const auto store = std::move(*AlarmStore::open(directory.path(), 100));
  int targets = 0;
  const auto add = [&](const std::string& alarm, int count) {
    Change change;
    for (int i = 0; i < count; ++i)
      change.actions.push_back({.alarm = {"r", alarm},
                                .target = std::to_string(++targets),
                                .message = "{}",
                                .created = kStoredAt,
                                .due = kStoredAt});
    ASSERT_OK(store->change([&](const Alarms&) -> Result<Change> { return change; }));
  };
  const auto pending = [&] { return store->due_actions(kStoredAt, 1'000)->size(); };
  add("a", 90);
  add("a", 20);
  EXPECT_EQ(pending(), 100u);
  add("a", 1);
  EXPECT_EQ(pending(), 100u);
  add("b", 6);
  EXPECT_EQ(pending(), 106u) << "the other alarm has few pending actions";
  add("b", int(kPendingOfAlarmMax));
  EXPECT_EQ(pending(), 100u + size_t(kPendingOfAlarmMax));
}

TEST(Transition, StartsActionsOnlyIfTheValueChanges) {
  Alarm alarm = alarm_named("a");
  alarm.settings.actions = {{"ok"}, {"alarm1", "alarm2"}, {}};
  const PlainTexts texts;
  auto change = transition(alarm, {State::alarm, "r", "{}", kStoredAt + 1s, {}}, texts);
  ASSERT_EQ(change.actions.size(), 3u);
  EXPECT_EQ(change.actions[0].target, kEventBus);
  EXPECT_EQ(change.actions[0].message, "a ok -> alarm");
  EXPECT_EQ(change.actions[1].target, "alarm1");
  EXPECT_EQ(change.actions[1].message, "a alarm");
  EXPECT_EQ(change.history.size(), 1u);
  EXPECT_EQ(change.stored[0].state.transitioned, kStoredAt + 1s);
  change = transition(alarm, {State::ok, "other", "{}", kStoredAt + 1s, {}}, texts);
  EXPECT_TRUE(change.actions.empty() && change.history.empty());
  EXPECT_EQ(change.stored[0].state.transitioned, kStoredAt);
  alarm.settings.actions_enabled = false;
  change = transition(alarm, {State::alarm, "r", "{}", kStoredAt + 1s, {}}, texts);
  ASSERT_EQ(change.actions.size(), 1u);
  EXPECT_EQ(change.actions[0].target, kEventBus) << "events are sent even if actions are disabled";
  EXPECT_EQ(change.history.size(), 1u);
}

TEST(Dashboards, StoreListAndRemoveByName) {
  observe::TemporaryDirectory directory;
  auto dashboards = std::move(*Dashboards::open(directory.path()));
  ASSERT_OK(dashboards->put("b", "{}", {{"k", "v"}}, kStoredAt));
  ASSERT_OK(dashboards->put("a", std::string(1000, ' '), {}, kStoredAt));
  ASSERT_OK(dashboards->put("b", "{\"widgets\":[]}", {}, kStoredAt + 1s));
  dashboards.reset();
  dashboards = std::move(*Dashboards::open(directory.path()));
  EXPECT_EQ(*dashboards->body("b"), "{\"widgets\":[]}");
  EXPECT_EQ(*dashboards->tags("b"), (Tags{{"k", "v"}})) << "replacing keeps the tags";
  const auto all = dashboards->list("", "", 10);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "a");
  EXPECT_EQ((*all)[0].bytes, 1000);
  EXPECT_EQ((*all)[1].modified, kStoredAt + 1s);
  EXPECT_EQ(dashboards->list("b", "", 10)->size(), 1u);
  EXPECT_EQ(dashboards->list("", "a", 10)->size(), 1u);
  EXPECT_EQ(dashboards->remove({"a", "x"}).error().message, "x");
  EXPECT_EQ(dashboards->list("", "", 10)->size(), 2u) << "all or none";
  ASSERT_OK(dashboards->set_tags("a", {{"x", "y"}}));
  EXPECT_EQ(dashboards->set_tags("x", {}).error().kind, Kind::not_found);
  ASSERT_OK(dashboards->remove({"a", "b"}));
  EXPECT_EQ(dashboards->body("a").error().kind, Kind::not_found);
  EXPECT_EQ(
      dashboards->put("big", std::string(kDashboardBytesMax + 1, ' '), {}, kStoredAt).error().kind,
      Kind::exhausted);
  ASSERT_OK(dashboards->put("big", std::string(kDashboardBytesMax, ' '), {}, kStoredAt));
}

}  // namespace
}  // namespace trainyard::alarms
