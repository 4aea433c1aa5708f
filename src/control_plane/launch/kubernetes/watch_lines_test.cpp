#include "launch/kubernetes/watch_lines.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace trainyard::launch {
namespace {

class WatchLinesTest : public testing::Test {
 protected:
  Result<void> append(std::string_view bytes) {
    return lines_.append(bytes, [this](std::string_view line) -> Result<void> {
      if (line == "wrong") return corrupt("a wrong line");
      taken_.emplace_back(line);
      return {};
    });
  }

  WatchLines lines_;
  std::vector<std::string> taken_;
};

TEST_F(WatchLinesTest, JoinsPiecesOfAnySize) {
  for (const char* piece : {"fi", "rst\nsecond", "", "\n\nthird\nbegun"})
    ASSERT_TRUE(append(piece));
  EXPECT_EQ(taken_, (std::vector<std::string>{"first", "second", "third"}));
}

TEST_F(WatchLinesTest, StopsAtTheFirstErrorOfALine) {
  EXPECT_EQ(append("first\nwrong\nthird\n").error().kind, Kind::corrupt);
  EXPECT_EQ(taken_, std::vector<std::string>{"first"});
}

TEST_F(WatchLinesTest, LimitsALine) {
  const std::string half(kWatchLineBytesMax / 2, 'a');
  ASSERT_TRUE(append(half));
  ASSERT_TRUE(append(half));
  EXPECT_EQ(append("a").error().kind, Kind::exhausted) << "it is not kept";
  EXPECT_TRUE(taken_.empty());
}

TEST_F(WatchLinesTest, LimitsEachLineByItself) {
  const std::string line = std::string(kWatchLineBytesMax, 'a') + "\n";
  ASSERT_TRUE(append(line + "b\n"));
  ASSERT_EQ(taken_.size(), 2u);
  EXPECT_EQ(append("a" + line).error().kind, Kind::exhausted) << "also if it is whole";
}

}  // namespace
}  // namespace trainyard::launch
