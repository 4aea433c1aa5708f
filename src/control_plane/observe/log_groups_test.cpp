#include <algorithm>
#include <filesystem>

#include "base/testing/test_clock.hpp"
#include "observe/log_definitions.hpp"
#include "observe/logs.hpp"
#include "observe/testing/test_world.hpp"

namespace trainyard::observe {
namespace {

struct GroupWorld {
  TemporaryDirectory directory;
  TestClock clock;
  LogSettings settings;
  std::vector<std::string> appended;
  std::unique_ptr<Logs> logs;

  GroupWorld() {
    settings.appended = [this](const StreamKey& key, const std::vector<LogEvent>& events) {
      for (const auto& event : events) appended.push_back(key.stream + ":" + event.message);
    };
    restart();
  }
  void restart() {
    logs.reset();
    logs = *open_logs(directory.path(), clock, settings);
  }
  void put(const std::string& group, const std::string& stream, Instant at) {
    ASSERT_OK(logs->ensure_stream({"r", group, stream}));
    ASSERT_OK(logs->append({"r", group, stream}, {{at, {}, "m"}}));
  }
  size_t files() {
    size_t count = 0;
    for (const auto& each :
         std::filesystem::recursive_directory_iterator(directory.path() + "/segments"))
      count += each.path().extension() == ".log" ? 1 : 0;
    return count;
  }
  std::vector<std::string> streams(const std::string& group) {
    std::vector<std::string> names;
    const auto found = logs->streams("r", group, "");
    if (found)
      for (const auto& each : *found) names.push_back(each.name);
    return names;
  }
};

TEST(LogGroups, KeepTheirSettingsAfterARestart) {
  GroupWorld world;
  ASSERT_OK(world.logs->create_group("r", "g", {.kms_key_id = "key", .tags = {{"a", "1"}}}));
  ASSERT_OK(world.logs->ensure_stream({"r", "plain", "s"}));
  ASSERT_OK(world.logs->change_group("r", "g", [](LogGroupSettings& settings) -> Result<void> {
    settings.retention_days = 7;
    settings.tags["b"] = "2";
    return ok();
  }));
  const auto refused = world.logs->change_group("r", "g", [](LogGroupSettings& settings) {
    settings.tags.clear();
    return Result<void>(exhausted("no"));
  });
  EXPECT_FALSE(refused);
  world.restart();
  const auto group = world.logs->group("r", "g");
  ASSERT_OK(group);
  EXPECT_EQ(group->settings.retention_days, 7);
  EXPECT_EQ(group->settings.kms_key_id, "key");
  EXPECT_EQ(group->settings.tags, (std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ((*world.logs->groups("r", "g"))[0].settings.retention_days, 7);
  EXPECT_FALSE(world.logs->group("r", "plain")->settings.retention_days);
  EXPECT_EQ(world.logs->group("r", "none").error().kind, Kind::not_found);
}

TEST(LogGroups, AreRemovedWithTheirFilesAndDefinitions) {
  GroupWorld world;
  world.put("g", "a", world.clock.now());
  world.put("g", "b", world.clock.now());
  world.put("other", "c", world.clock.now());
  for (const char* group : {"g", "other"})
    ASSERT_OK(world.logs->definitions().put("r", DefinitionKind::metric_filter,
                                            {group, "f", "body", world.clock.now()}, 1));
  ASSERT_OK(world.logs->delete_stream({"r", "g", "a"}));
  EXPECT_EQ(world.streams("g"), std::vector<std::string>{"b"});
  EXPECT_EQ(world.files(), 2u);
  EXPECT_FALSE(world.logs->append({"r", "g", "a"}, {{world.clock.now(), {}, "late"}}));
  ASSERT_OK(world.logs->delete_group("r", "g"));
  EXPECT_EQ(world.files(), 1u);
  EXPECT_TRUE(world.logs->delete_group("r", "g").error().is(LogResource::group));
  EXPECT_TRUE(world.logs->delete_stream({"r", "other", "x"}).error().is(LogResource::stream));
  EXPECT_EQ(world.logs->definitions().all(DefinitionKind::metric_filter)->size(), 1u);
  // A new group with the same name is empty.
  world.put("g", "b", world.clock.now());
  world.restart();
  EXPECT_EQ(world.logs->read({"r", "g", "b"}, {})->events.size(), 1u);
}

TEST(LogGroups, UseTheirRetentionSetting) {
  GroupWorld world;
  const Instant old = world.clock.now() - 10 * 24h;
  for (const char* group : {"short", "long", "forever"}) world.put(group, "s", old);
  const auto keep = [&](const std::string& group, int64_t days) {
    ASSERT_OK(world.logs->change_group("r", group, [&](LogGroupSettings& settings) -> Result<void> {
      settings.retention_days = days;
      return ok();
    }));
  };
  keep("short", 7);
  keep("long", 30);
  world.restart();  // closes the streams
  ASSERT_OK(world.logs->retire(world.clock.now()));
  EXPECT_TRUE(world.streams("short").empty());
  EXPECT_EQ(world.streams("long").size(), 1u);
  EXPECT_EQ(world.streams("forever").size(), 1u);
  world.settings.retention = 5 * 24h;
  world.restart();
  ASSERT_OK(world.logs->retire(world.clock.now()));
  EXPECT_EQ(world.streams("long").size(), 1u) << "the retention of the group is longer";
  EXPECT_TRUE(world.streams("forever").empty());
}

TEST(LogGroups, ReportNewEventsOnce) {
  GroupWorld world;
  const StreamKey key{"r", "g", "s"};
  ASSERT_OK(world.logs->ensure_stream(key));
  ASSERT_OK(world.logs->append(key, {{world.clock.now(), {}, "1"}}, 1));
  ASSERT_OK(world.logs->append(key, {{world.clock.now(), {}, "1"}}, 1));
  ASSERT_OK(world.logs->append(key, {}, 2));
  ASSERT_OK(world.logs->append(key, {{world.clock.now(), {}, "2"}}, 3));
  ASSERT_OK(world.logs->append(key, {{world.clock.now(), {}, "3"}}));
  EXPECT_FALSE(world.logs->append({"r", "g", "x"}, {{world.clock.now(), {}, "4"}}));
  EXPECT_EQ(world.appended, (std::vector<std::string>{"s:1", "s:2", "s:3"}));
}

TEST(LogDefinitions, AreStoredByGroupAndName) {
  GroupWorld world;
  auto& definitions = world.logs->definitions();
  const auto kind = DefinitionKind::query;
  const Instant now = world.clock.now();
  ASSERT_OK(definitions.put("r", kind, {"", "b", "1", now}, 2));
  ASSERT_OK(definitions.put("r", kind, {"", "a", "2", now}, 2));
  ASSERT_OK(definitions.put("r", kind, {"", "a", "3", now}, 2));
  EXPECT_EQ(definitions.put("r", kind, {"", "c", "4", now}, 2).error().kind, Kind::exhausted);
  EXPECT_TRUE(
      definitions.put("r", kind, {"none", "c", "4", now}, 2).error().is(LogResource::group));
  ASSERT_OK(definitions.put("other", kind, {"", "a", "5", now}, 2));
  const auto listed = definitions.list("r", kind, "");
  ASSERT_OK(listed);
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].body, "3");
  EXPECT_EQ(definitions.list("r", DefinitionKind::metric_filter)->size(), 0u);
  EXPECT_TRUE(
      definitions.list("r", DefinitionKind::metric_filter, "none").error().is(LogResource::group));
  EXPECT_EQ((*definitions.find("r", kind, "", "a"))->body, "3");
  ASSERT_OK(definitions.remove("r", kind, "", "a"));
  EXPECT_FALSE(*definitions.find("r", kind, "", "a"));
  EXPECT_EQ(definitions.remove("r", kind, "", "a").error().kind, Kind::not_found);
  EXPECT_EQ(definitions.all(kind)->size(), 2u);
}

}  // namespace
}  // namespace trainyard::observe
