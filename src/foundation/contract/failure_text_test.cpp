#include "contract/failure_text.hpp"

#include <gtest/gtest.h>

namespace trainyard::contract {
namespace {

TEST(FailureText, SignalsAreDescribed) {
  EXPECT_EQ(describe_signal(132), "killed by SIGILL (illegal instruction)");
  EXPECT_EQ(describe_signal(134), "killed by SIGABRT (aborted)");
  EXPECT_EQ(describe_signal(137), "killed by SIGKILL");
  EXPECT_EQ(describe_signal(139), "killed by SIGSEGV (segmentation fault)");
  EXPECT_EQ(describe_signal(143), "killed by SIGTERM (terminated)");
  EXPECT_EQ(describe_signal(128 + 50), "killed by signal 50");
  for (const int own : {-1, 0, 1, 127, 128, 193, 255, 1 << 30})
    EXPECT_EQ(describe_signal(own), "") << own;
}

TEST(FailureText, LastLinesAreWhole) {
  EXPECT_EQ(last_lines("a\nb\nc\n", 100), "a\nb\nc");
  EXPECT_EQ(last_lines("a\nb\nc", 100, 2), "b\nc");
  EXPECT_EQ(last_lines("first\nb\nc\n", 5), "b\nc");
  EXPECT_EQ(last_lines("first\n\nc\n", 3), "\nc");
  EXPECT_EQ(last_lines("much too long", 9), "much t...");
  EXPECT_EQ(last_lines("a\nmuch too long\n", 9), "much t...");
  EXPECT_EQ(last_lines("", 9), "");
  EXPECT_EQ(last_lines("\n\n", 9), "");
  EXPECT_EQ(last_lines("a\nb", 100, 0), "");
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "line " + std::to_string(i) + "\n";
  const std::string last = last_lines(many, kShownBytesMax);
  EXPECT_TRUE(last.starts_with("line 980\n")) << last;
  EXPECT_TRUE(last.ends_with("\nline 999")) << last;
}

TEST(FailureText, LinesAreCutBehindTheFirst) {
  EXPECT_EQ(fit_lines("killed\n1\n2\n3", 100), "killed\n1\n2\n3");
  EXPECT_EQ(fit_lines("killed\n1\n2\n3", 10), "killed\n2\n3");
  EXPECT_EQ(fit_lines("killed\n1\n2\n3", 100, 1), "killed\n3");
  EXPECT_EQ(fit_lines("killed\n", 100), "killed");
  EXPECT_EQ(fit_lines("much too long\n1", 9), "much t...");
  EXPECT_EQ(fit_lines("killed", 100), "killed");
}

}  // namespace
}  // namespace trainyard::contract
