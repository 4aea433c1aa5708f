#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/test_clock.hpp"
#include "cli/commands.hpp"
#include "cli/testing/test_client.hpp"

namespace trainyard::cli {
namespace {

class ReplayTerminal final : public os::Terminal {
 public:
  os::TerminalShape shape() override { return {false, true, true, 100, 30}; }
  Result<void> write(std::string_view text) override {
    written += text;
    return {};
  }
  void write_error(std::string_view text) override { progress += text; }
  void watch_interrupts() override {}
  os::TerminalEvent wait(Duration, bool, int) override { return {}; }
  Result<std::unique_ptr<os::RawTerminal>> raw() override { return invalid("no terminal"); }
  void hide_cursor() override {}
  void show_cursor() override {}

  std::string written, progress;
};

// A server that needs two calls for a replay.
struct ReplayWorldOfCommands {
  std::vector<Json> requests;
  TestClock clock;
  ReplayTerminal terminal;
  ScriptedClient client{[this](const std::string&, const Json& input) -> Result<Json> {
    requests.push_back(input);
    if (!input.contains("ReplayId"))
      return Json{{"ReplayId", "abc"}, {"Completed", false}, {"Progress", 0.5}};
    return Json{{"ReplayId", "abc"}, {"Completed", true}, {"Outcomes", Json::array()}};
  }};

  Result<int> run_words(const std::vector<std::string>& words, bool live = false) {
    requests.clear();
    CommandContext context{client, terminal, {}, {.live = live}, clock, {}, "xterm", {}};
    return run(context, TRY(read_arguments(*find_form("replay"), words)));
  }
  std::string error_of(const std::vector<std::string>& words) {
    const auto done = run_words(words);
    return done ? "" : done.error().message;
  }
};

TEST(ReplayCommand, SendsTheChangesOfEachVariant) {
  ReplayWorldOfCommands world;
  const auto done = world.run_words({"--since",
                                     "2d",
                                     "--until=2025-11-20",
                                     "--machines",
                                     "2xml.m5.4xlarge",
                                     "--variant",
                                     "big",
                                     "--add-machine",
                                     "a=b=96,384.5,8",
                                     "--remove-machine",
                                     "box",
                                     "--variant",
                                     "fair",
                                     "--queue",
                                     "a:b:policy=fair",
                                     "--queue",
                                     "nightly:priority=5",
                                     "--weight",
                                     "training jobs/user/x=0.5",
                                     "--limit",
                                     "vCPU of small=8",
                                     "--submit-rate",
                                     "1.5",
                                     "--jobs",
                                     "3",
                                     "--json"});
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_EQ(world.requests.size(), 2u);
  EXPECT_EQ(world.requests[1], (Json{{"ReplayId", "abc"}}));
  const Json& sent = world.requests[0];
  EXPECT_EQ(sent["PeriodStart"], to_seconds(kTestClockStart - 48h));
  EXPECT_EQ(sent["PeriodEnd"], to_seconds(*parse_iso8601("2025-11-20T00:00:00Z")));
  EXPECT_EQ(sent["MostAffectedCount"], 3);
  const Json wanted = {
      {{"Name", "changed"},
       {"Changes",
        {{{"Kind", "AddMachines"}, {"MachineCount", 2}, {"InstanceType", "ml.m5.4xlarge"}}}}},
      {{"Name", "big"},
       {"Changes",
        {{{"Kind", "AddMachines"},
          {"Name", "a=b"},
          {"Cpus", 96.0},
          {"MemoryInBytes", int64_t(384.5 * double(int64_t{1} << 30))},
          {"Gpus", 8}},
         {{"Kind", "RemoveMachine"}, {"Name", "box"}}}}},
      {{"Name", "fair"},
       {"Changes",
        {{{"Kind", "SetPolicy"}, {"Name", "a:b"}, {"Policy", "fair"}},
         {{"Kind", "SetPriority"}, {"Name", "nightly"}, {"Value", 5.0}},
         {{"Kind", "SetWeight"}, {"Name", "training jobs"}, {"Share", "user/x"}, {"Value", 0.5}},
         {{"Kind", "SetLimit"}, {"Name", "vCPU of small"}, {"Value", 8.0}},
         {{"Kind", "SetSubmitRate"}, {"Value", 1.5}}}}}};
  EXPECT_EQ(sent["Variants"], wanted);
}

TEST(ReplayCommand, ShowsABarOnATerminalOnly) {
  ReplayWorldOfCommands world;
  ASSERT_TRUE(world.run_words({}));
  EXPECT_EQ(world.terminal.progress, "");
  ASSERT_TRUE(world.run_words({}, true));
  EXPECT_NE(world.terminal.progress.find("50%"), std::string::npos);
  EXPECT_TRUE(world.terminal.progress.ends_with("\r\033[K"));
}

TEST(ReplayCommand, RejectsInvalidArguments) {
  ReplayWorldOfCommands world;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--since", "yesterday"},
           {"--since", "1h", "--until", "2h"},
           {"--add-machine", "96,384,8"},
           {"--add-machine", "a=96"},
           {"--add-machine", "a=0,1,1"},
           {"--add-machine", "a=1,-1,1"},
           {"--add-machine", "a=1,1e308,1"},
           {"--add-machine", "a=1,1,0.5"},
           {"--add-machine", "a=nan,1,1"},
           {"--machines", "ml.m5.4xlarge"},
           {"--machines", "2x"},
           {"--queue", "nightly"},
           {"--queue", "nightly:colour=red"},
           {"--queue", "nightly:priority=inf"},
           {"--weight", "nightly=1"},
           {"--weight", "nightly/a=nan"},
           {"--limit", "small"},
           {"--submit-rate", "fast"},
           {"--jobs", "many"},
       }) {
    EXPECT_NE(world.error_of(words), "") << words.back();
    EXPECT_TRUE(world.requests.empty()) << words.back();
  }
}

}  // namespace
}  // namespace trainyard::cli
