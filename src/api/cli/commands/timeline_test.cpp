#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/test_clock.hpp"
#include "cli/commands.hpp"
#include "cli/testing/test_client.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::cli {
namespace {

class TimelineTerminal final : public os::Terminal {
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

// A server with the job mnist-1.
struct TimelineCommands {
  TestClock clock;
  TimelineTerminal terminal;
  ScriptedClient client{[](const std::string& operation, const Json& input) -> Result<Json> {
    if (input.value("JobName", "") != "mnist-1") return not_found("Requested resource not found.");
    if (operation == "DescribeJob") return Json{{"Name", "mnist-1"}, {"Status", "Completed"}};
    return Json{{"JobName", "mnist-1"},
                {"Trace", "{\"traceEvents\":[]}\n"},
                {"Notes", {"rank-0.json\x1b[2J: the first events only"}}};
  }};

  Result<int> run_words(const std::vector<std::string>& words) {
    CommandContext context{client, terminal, {}, {}, clock, {}, "xterm", {}};
    return run(context, TRY(read_arguments(*find_form("timeline"), words)));
  }
};

TEST(TimelineCommand, WritesTheTraceToAFile) {
  TimelineCommands world;
  const os::TemporaryDirectory directory;
  const std::string path = directory.path() + "/life.json";
  const auto done = world.run_words({"mnist-1", "-o", path});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*done, 0);
  EXPECT_EQ(*os::read_file(path), "{\"traceEvents\":[]}\n");
  EXPECT_EQ(world.terminal.written,
            "wrote " + path + " (19 B): open it in ui.perfetto.dev or chrome://tracing\n");
  EXPECT_EQ(world.terminal.progress, "note: rank-0.json?[2J: the first events only\n");
  EXPECT_EQ(world.client.calls, (std::vector<std::string>{"DescribeJob", "GetJobTimeline"}));
}

TEST(TimelineCommand, ReplacesALinkWithTheDefaultName) {
  TimelineCommands world;
  const os::TemporaryDirectory directory;
  const std::string other = directory.path() + "/other", name = "mnist-1.trace.json";
  ASSERT_TRUE(os::write_file(other, "kept"));
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  std::filesystem::create_symlink(other, name);
  const auto done = world.run_words({"mnist-1"});
  std::filesystem::current_path(before);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(*os::read_file(other), "kept");
  EXPECT_FALSE(std::filesystem::is_symlink(directory.path() + "/" + name));
  EXPECT_EQ(*os::read_file(directory.path() + "/" + name), "{\"traceEvents\":[]}\n");
}

TEST(TimelineCommand, WritesTheTraceToStandardOutput) {
  TimelineCommands world;
  ASSERT_TRUE(world.run_words({"mnist-1", "--output=-"}));
  EXPECT_EQ(world.terminal.written, "{\"traceEvents\":[]}\n");
  EXPECT_FALSE(world.run_words({"mnist-1", "-o", "/nowhere/at/all"}));
  ASSERT_TRUE(world.run_words({"mnist-1", "--otlp", "-o", "-"}));
  EXPECT_EQ(world.client.calls.back(), "GetJobTimeline");
}

}  // namespace
}  // namespace trainyard::cli
