#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/test_clock.hpp"
#include "base/thread_safety.hpp"
#include "cli/commands.hpp"
#include "cli/testing/test_client.hpp"

namespace trainyard::cli {
namespace {

// Keeps both streams apart. Its first wait ends by ctrl-C.
class JobsTerminal final : public os::Terminal {
 public:
  os::TerminalShape shape() override { return {false, true, true, 100, 30}; }
  Result<void> write(std::string_view text) override {
    written += text;
    return {};
  }
  void write_error(std::string_view text) override { errors += text; }
  void watch_interrupts() override {}
  os::TerminalEvent wait(Duration, bool, int) override { return {.interrupted = true}; }
  Result<std::unique_ptr<os::RawTerminal>> raw() override { return invalid("no terminal"); }
  void hide_cursor() override {}
  void show_cursor() override {}

  std::string written, errors;
};

Json listed_job(const std::string& name, double created) {
  return Json{{"Name", name}, {"Status", "Completed"}, {"CreationTime", created}};
}

// A server with several regions, of which each answers ListJobs by its own function.
struct RegionsWorld {
  using Region = std::function<Result<Json>(const Json& input)>;

  TestClock clock;
  JobsTerminal terminal;
  std::map<std::string, Region> regions;
  Mutex mutex;
  std::vector<client::Settings> opened;
  ScriptedClient home{[this](const std::string& operation, const Json&) -> Result<Json> {
    EXPECT_EQ(operation, "DescribeRegions");
    Json listed = Json::array();
    for (const auto& [name, region] : regions) listed.push_back({{"regionName", name}});
    return Json{{"regionInfo", listed}};
  }};

  Result<std::unique_ptr<client::Client>> open_client(client::Settings settings) {
    const MutexLock lock(mutex);
    opened.push_back(settings);
    const Region region = regions.at(settings.region);
    return std::unique_ptr<client::Client>(std::make_unique<ScriptedClient>(
        [region](const std::string& operation, const Json& input) {
          EXPECT_EQ(operation, "ListJobs");
          return region(input);
        },
        std::move(settings)));
  }

  Result<int> run_words(std::vector<std::string> words) {
    words.insert(words.begin(), "--all-regions");
    CommandContext context{
        home,    terminal,
        {},      {},
        clock,   {},
        "xterm", {},
        {},      [this](client::Settings settings) {
          return open_client(std::move(settings)); }};
    return run(context, TRY(read_arguments(*find_form("jobs"), words)));
  }
};

RegionsWorld::Region answering(std::vector<Json> jobs) {
  return [jobs](const Json&) -> Result<Json> { return Json{{"Jobs", jobs}}; };
}

TEST(JobsOfAllRegions, AreOneListWithTheirRegions) {
  RegionsWorld world;
  world.regions["eu-west-1"] = answering({listed_job("new", 1'763'631'890)});
  world.regions["us-east-1"] =
      answering({listed_job("newest", 1'763'631'895), listed_job("old", 1'763'631'800)});
  const auto done = world.run_words({});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, 0);
  EXPECT_EQ(world.terminal.written,
            "name    region     status       age\n"
            "newest  us-east-1  Completed     5s\n"
            "new     eu-west-1  Completed    10s\n"
            "old     us-east-1  Completed  1m40s\n");
  EXPECT_EQ(world.terminal.errors, "");
}

TEST(JobsOfAllRegions, ApplyTheOptionsToEachRegionAndTheMaximumToTheList) {
  RegionsWorld world;
  std::vector<Json> questions;
  for (const char* region : {"eu-west-1", "us-east-1"})
    world.regions[region] = [&](const Json& input) -> Result<Json> {
      const MutexLock lock(world.mutex);
      questions.push_back(input);
      return Json{{"Jobs", {listed_job("a", 2), listed_job("b", 1)}}};
    };
  ASSERT_TRUE(world.run_words({"--status", "failed", "--max", "3", "--json"}));
  const Json expected{{"StatusEquals", "Failed"}, {"MaxResults", 3}};
  EXPECT_EQ(questions, (std::vector<Json>{expected, expected}));
  const auto printed = parse_json(world.terminal.written);
  ASSERT_TRUE(printed);
  EXPECT_EQ(printed->at("Jobs").size(), 3u);
  EXPECT_EQ(printed->at("Jobs")[1].at("Region"), "us-east-1");
  EXPECT_EQ(printed->at("MissingRegions"), Json::array());
  EXPECT_EQ(world.run_words({"--status", "odd"}).error().kind, Kind::invalid);
}

TEST(JobsOfAllRegions, AreQueriedAtTheSameTime) {
  constexpr size_t kRegions = 5;
  constexpr auto kSecondsMax = 60s;  // only a sequential query waits so long
  RegionsWorld world;
  ConditionVariable changed;
  Mutex guard;
  size_t waiting = 0;
  for (size_t i = 0; i < kRegions; ++i)
    world.regions["region-" + std::to_string(i)] = [&](const Json&) -> Result<Json> {
      MutexLock lock(guard);
      ++waiting;
      changed.notify_all();
      if (!changed.wait_for(lock, kSecondsMax, [&] { return waiting == kRegions; }))
        return unavailable("the others were not queried");
      return Json{{"Jobs", Json::array()}};
    };
  ASSERT_TRUE(world.run_words({}));
  EXPECT_EQ(world.terminal.errors, "");
  EXPECT_EQ(world.terminal.written, "no jobs\n");
}

TEST(JobsOfAllRegions, AreListedWithoutARegionThatDoesNotAnswer) {
  RegionsWorld world;
  world.regions["eu-west-1"] = [](const Json&) -> Result<Json> {
    return unavailable("connection refused");
  };
  world.regions["us-east-1"] = answering({listed_job("one", 1'763'631'895)});
  world.regions["us-west-2"] = [](const Json&) -> Result<Json> { return Json{{"Jobs", {1}}}; };
  const auto done = world.run_words({});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, 0);
  EXPECT_NE(world.terminal.written.find("one   us-east-1"), std::string::npos)
      << world.terminal.written;
  EXPECT_TRUE(world.terminal.errors.starts_with(
      "the jobs of region eu-west-1 are missing: connection refused\n"
      "the jobs of region us-west-2 are missing: "))
      << world.terminal.errors;
  world.terminal.written.clear();
  ASSERT_TRUE(world.run_words({"--json"}));
  const auto printed = parse_json(world.terminal.written);
  ASSERT_TRUE(printed);
  EXPECT_EQ(printed->at("MissingRegions").size(), 2u);
  EXPECT_EQ(printed->at("Jobs").size(), 1u);
}

TEST(JobsOfAllRegions, AreListedWithoutARegionWithAnInvalidAnswer) {
  RegionsWorld world;
  const std::vector<Json> invalid_answers{
      Json::array({1}), Json("jobs"), Json(), Json{{"Jobs", {Json::object()}}},
      Json{{"Jobs", {{{"Name", 1}, {"Status", "Completed"}}}}, {"NextToken", 7}}};
  for (size_t i = 0; i < invalid_answers.size(); ++i)
    world.regions["invalid-" + std::to_string(i)] =
        [answer = invalid_answers[i]](const Json&) -> Result<Json> { return answer; };
  world.regions["us-east-1"] = answering({listed_job("one", 1'763'631'895)});
  ASSERT_TRUE(world.run_words({"--json"}));
  const auto printed = parse_json(world.terminal.written);
  ASSERT_TRUE(printed);
  EXPECT_EQ(printed->at("Jobs").size(), 1u);
  EXPECT_EQ(printed->at("MissingRegions").size(), invalid_answers.size());
}

TEST(JobsOfAllRegions, FailIfNoRegionAnswers) {
  RegionsWorld world;
  for (const char* region : {"eu-west-1", "us-east-1"})
    world.regions[region] = [](const Json&) -> Result<Json> { return unavailable("away"); };
  const auto done = world.run_words({});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "no region lists its jobs: 2 regions queried");
  EXPECT_EQ(world.terminal.written, "");
  EXPECT_EQ(world.terminal.errors,
            "the jobs of region eu-west-1 are missing: away\n"
            "the jobs of region us-east-1 are missing: away\n");
}

TEST(JobsOfAllRegions, EndWithARegionWhosePagesDoNotEnd) {
  RegionsWorld world;
  world.regions["eu-west-1"] = [&](const Json&) -> Result<Json> {
    world.clock.advance(1s);
    return Json{{"Jobs", Json::array()}, {"NextToken", "more"}};
  };
  EXPECT_FALSE(world.run_words({}));
  EXPECT_EQ(world.terminal.errors,
            "the jobs of region eu-west-1 are missing: timed out after 10 s\n");
}

TEST(JobsOfAllRegions, AreRequestedOnceWithAShortTimeout) {
  RegionsWorld world;
  world.regions["eu-west-1"] = answering({});
  ASSERT_TRUE(world.run_words({}));
  ASSERT_EQ(world.opened.size(), 1u);
  EXPECT_EQ(world.opened[0].attempts_max, 1);
  EXPECT_EQ(world.opened[0].answer_limit, 10s);
}

TEST(JobsOfAllRegions, KeepBeingWatchedWithoutAnyAnswer) {
  RegionsWorld world;
  world.regions["eu-west-1"] = [](const Json&) -> Result<Json> { return unavailable("away"); };
  const auto done = world.run_words({"--watch"});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, kExitInterrupted);
  EXPECT_EQ(world.terminal.written,
            "no jobs\n"
            "the jobs of region eu-west-1 are missing: away\n");
  EXPECT_EQ(world.terminal.errors, "");
}

TEST(JobsOfAllRegions, NeedAListOfRegions) {
  RegionsWorld world;
  const auto done = world.run_words({});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the server lists no regions");
}

}  // namespace
}  // namespace trainyard::cli
