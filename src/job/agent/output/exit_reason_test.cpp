#include "agent/output/exit_reason.hpp"

#include <gtest/gtest.h>

#include "contract/failure_text.hpp"

namespace trainyard::agent {
namespace {

TEST(ExitReason, DescribesSignals) {
  EXPECT_EQ(exit_reason({.code = 139}),
            "killed by SIGSEGV (segmentation fault); the process left no failure file and printed "
            "nothing");
  EXPECT_EQ(exit_reason({.code = 132, .last_output = "epoch 1\nepoch 2"}),
            "killed by SIGILL (illegal instruction)\nepoch 1\nepoch 2");
  EXPECT_EQ(exit_reason({.code = 137, .last_output = "epoch 1"}), "killed by SIGKILL\nepoch 1");
  EXPECT_EQ(exit_reason({.code = 1, .last_output = "epoch 1\nepoch 2"}), "epoch 1\nepoch 2");
  EXPECT_EQ(exit_reason({.code = 1}), "the process left no failure file and printed nothing");
}

TEST(ExitReason, UsesTheFailureFile) {
  EXPECT_EQ(exit_reason({.code = 139, .failure = "no such column", .last_output = "epoch 1"}),
            "no such column");
}

TEST(ExitReason, NamesTheProcessesThatUsedTheMemory) {
  ProcessEnd end{
      .code = 137, .out_of_memory = true, .limit = "1.0 GiB memory limit (1/8 of ml.m5.large)"};
  EXPECT_EQ(exit_reason(end),
            "OutOfMemory: exceeded its 1.0 GiB memory limit (1/8 of ml.m5.large)");
  end.largest = {{"python3", 800 << 20}, {"loader", 100 << 20}};
  end.last_output = "epoch 1";
  EXPECT_EQ(
      exit_reason(end),
      "OutOfMemory: exceeded its 1.0 GiB memory limit (1/8 of ml.m5.large); largest processes: "
      "python3 (800 MiB), loader (100 MiB)\nepoch 1");
  end.failure =
      "ExecuteUserScriptError: epoch 1 (algo-1, rank 2, killed by SIGKILL)\nepoch 0\nepoch 1";
  EXPECT_EQ(
      exit_reason(end),
      "OutOfMemory: exceeded its 1.0 GiB memory limit (1/8 of ml.m5.large); largest processes: "
      "python3 (800 MiB), loader (100 MiB); ExecuteUserScriptError: epoch 1 "
      "(algo-1, rank 2, killed by SIGKILL)\nepoch 0\nepoch 1");
}

TEST(ExitReason, KeepsTheLastLines) {
  ProcessEnd end{.code = 134};
  for (int i = 0; i < 100; ++i) end.last_output += std::to_string(i) + std::string(50, 'x') + "\n";
  const std::string reason = exit_reason(end);
  EXPECT_LE(reason.size(), contract::kShownBytesMax);
  EXPECT_TRUE(reason.starts_with("killed by SIGABRT (aborted)\n8")) << reason;
  EXPECT_TRUE(reason.ends_with("\n99" + std::string(50, 'x'))) << reason;
}

}  // namespace
}  // namespace trainyard::agent
