#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/testing/test_clock.hpp"
#include "cli/commands.hpp"
#include "cli/testing/test_client.hpp"

namespace trainyard::cli {
namespace {

// Records what is written to it. Its waits end at once.
class RecordedTerminal final : public os::Terminal {
 public:
  os::TerminalShape shape() override { return {false, true, true, 100, 30}; }
  Result<void> write(std::string_view text) override {
    written += text;
    return {};
  }
  void write_error(std::string_view text) override { written += text; }
  void watch_interrupts() override {}
  os::TerminalEvent wait(Duration, bool, int) override { return {}; }
  Result<std::unique_ptr<os::RawTerminal>> raw() override { return invalid("no terminal"); }
  void hide_cursor() override {}
  void show_cursor() override {}

  std::string written;
};

// A server with one job: each description of the job has the next of `statuses`, and the log has
// one line from the start.
struct SubmitWorld {
  explicit SubmitWorld(std::deque<std::string> statuses, int64_t hosts = 1)
      : left(std::move(statuses)), hosts_wanted(hosts) {
    std::ofstream(file) << R"({"TrainingJobName": "mnist", "InputDataConfig": []})";
  }
  ~SubmitWorld() { std::filesystem::remove(file); }

  Result<Json> answer(const std::string& operation, const Json& input) {
    if (!reachable) return unavailable("no server");
    if (operation == "GetCallerIdentity") return Json{{"Account", "111122223333"}};
    if (operation == "CreateTrainingJob") created = input;
    if (operation == "PreviewJob") {
      previewed = *parse_json(input["TrainingJobRequest"].get<std::string>());
      return Json{{"StartsNow", true}};
    }
    if (operation == "DescribeLogStreams")
      return Json{{"logStreams", {{{"logStreamName", "mnist/algo-1-1"}, {"storedBytes", 1}}}}};
    if (operation == "GetLogEvents") {
      const bool first = std::exchange(has_line, false);
      return Json{{"events", first ? Json::array({{{"timestamp", 1}, {"message", "epoch 1"}}})
                                   : Json::array()}};
    }
    if (operation != "DescribeJob") return Json::object();
    const std::string status = left.front();
    if (left.size() > 1) left.pop_front();
    const bool over = status == "Completed";
    return Json{{"Name", "mnist"},
                {"Status", over ? "Completed" : "InProgress"},
                {"SecondaryStatus", status},
                {"InstanceGroups", {{{"InstanceType", "a"}, {"InstanceCount", hosts_wanted}}}}};
  }
  std::string submit(bool live, const std::string& option = "--follow") {
    OutputStyle style{.colours = false, .live = live, .unicode = false, .columns = live ? 100 : 0};
    CommandContext context{
        client, terminal, style, style, clock, [] { return invalid("no objects"); }, "", {}};
    const Form& form = *find_form("submit");
    const auto code = run(context, *read_arguments(form, {file, option}));
    EXPECT_TRUE(code) << code.error().message;
    return terminal.written;
  }

  const std::string file = testing::TempDir() + "submit_test-" +
                           testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
  std::deque<std::string> left;
  const int64_t hosts_wanted;
  bool has_line = true;
  bool reachable = true;
  Json created, previewed;  // the requests
  ScriptedClient client{
      [this](const std::string& operation, const Json& input) { return answer(operation, input); }};
  RecordedTerminal terminal;
  TestClock clock;
};

std::string after_the_line(const std::string& shown) {
  const auto line = shown.find("epoch 1");
  EXPECT_NE(line, std::string::npos) << shown;
  return line == std::string::npos ? "" : shown.substr(line);
}

TEST(Submit, UsesTheServersAccountForItsRole) {
  SubmitWorld world({"Completed"});
  world.submit(false);
  EXPECT_EQ(world.created["RoleArn"], "arn:aws:iam::111122223333:role/trainer");
}

TEST(Submit, QueriesNoAccountIfTheFileHasARole) {
  SubmitWorld world({"Completed"});
  std::ofstream(world.file) << R"({"TrainingJobName": "mnist", "InputDataConfig": [],
                                 "RoleArn": "arn:aws:iam::5:role/r"})";
  world.submit(false);
  EXPECT_EQ(world.created["RoleArn"], "arn:aws:iam::5:role/r");
  EXPECT_EQ(std::ranges::count(world.client.calls, "GetCallerIdentity"), 0);
}

TEST(Submit, NeedsNoServerForADryRun) {
  SubmitWorld world({});
  world.reachable = false;
  const std::string shown = world.submit(false, "--dry-run");
  EXPECT_NE(shown.find("\"TrainingJobName\": \"mnist\""), std::string::npos) << shown;
  EXPECT_EQ(shown.find("\"RoleArn\""), std::string::npos) << shown;
  EXPECT_NE(shown.find("RoleArn is left out: requesting the account of the role: no server"),
            std::string::npos)
      << shown;
}

TEST(Submit, SubmitsNothingForAPreview) {
  SubmitWorld world({});
  const std::string shown = world.submit(false, "--preview");
  EXPECT_NE(shown.find("starts   now"), std::string::npos) << shown;
  EXPECT_TRUE(world.created.is_null());
  EXPECT_EQ(world.previewed["TrainingJobName"], "mnist");
  EXPECT_EQ(world.previewed["RoleArn"], "arn:aws:iam::111122223333:role/trainer");
}

TEST(Submit, ShowsTheStatusAfterTheFirstLines) {
  // The job is described when it is submitted, before its log is first read, and for its first
  // line.
  SubmitWorld world({"Starting", "Starting", "Training", "Training", "Completed"});
  const std::string shown = world.submit(true);
  EXPECT_NE(shown.find("mnist  InProgress Starting"), std::string::npos) << shown;
  const std::string after = after_the_line(shown);
  EXPECT_EQ(after.find("Starting"), std::string::npos) << shown;
  EXPECT_NE(after.find("mnist  InProgress Training"), std::string::npos) << shown;
}

TEST(Submit, LeavesOutAStatusThatIsOlderThanTheLog) {
  SubmitWorld world(
      {"Starting", "Starting", "Downloading", "Downloading", "Training", "Completed"});
  const std::string after = after_the_line(world.submit(true));
  EXPECT_EQ(after.find("Starting"), std::string::npos) << after;
  EXPECT_EQ(after.find("Downloading"), std::string::npos) << after;
  EXPECT_NE(after.find("mnist  InProgress\n"), std::string::npos) << after;
  EXPECT_NE(after.find("mnist  InProgress Training"), std::string::npos) << after;
}

TEST(Submit, ShowsThatOtherHostsOfTheGangDownload) {
  SubmitWorld world({"Starting", "Starting", "Downloading", "Downloading", "Completed"}, 2);
  const std::string after = after_the_line(world.submit(true));
  EXPECT_NE(after.find("mnist  InProgress Downloading"), std::string::npos) << after;
}

TEST(Submit, WritesAStatusOnceWithoutATerminal) {
  SubmitWorld world({"Starting", "Starting", "Starting", "Starting", "Training", "Completed"});
  EXPECT_EQ(world.submit(false),
            "mnist  InProgress Starting\n"
            "algo-1 | epoch 1\n"
            "mnist  InProgress Training\n"
            "mnist Completed\n");
}

}  // namespace
}  // namespace trainyard::cli
