#include "cli/commands/stop_prompt.hpp"

#include <gtest/gtest.h>

#include <string>

namespace trainyard::cli {
namespace {

TEST(StopPrompt, AnswersByTheFirstKeyThatDoes) {
  EXPECT_EQ(read_stop_answer("s"), true);
  EXPECT_EQ(read_stop_answer("S"), true);
  for (const char* key : {"\r", "\n", "\x03", "\x04"}) EXPECT_EQ(read_stop_answer(key), false);
  EXPECT_EQ(read_stop_answer("\rs"), false);
}

TEST(StopPrompt, IgnoresOtherKeys) {
  for (const char* keys :
       {"", "x", "\033", "\033[A", "\033OS", "\033[1;2S", "\033s", "\033[", "\033O"})
    EXPECT_FALSE(read_stop_answer(keys)) << std::string(keys).substr(0, 1);
}

TEST(StopPrompt, FindsTheAnswerAmongKeysThatArriveTogether) {
  EXPECT_EQ(read_stop_answer("x\033[A\r"), false);
  EXPECT_EQ(read_stop_answer("\033OS\033[1;2Ss"), true);
}

}  // namespace
}  // namespace trainyard::cli
