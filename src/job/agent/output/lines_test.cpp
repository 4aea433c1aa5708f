#include "agent/output/lines.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/text.hpp"

namespace trainyard::agent {
namespace {

using Lines = std::vector<std::string>;

Lines split_whole(std::string_view bytes) {
  LineSplitter splitter;
  Lines lines;
  splitter.add(bytes, lines);
  splitter.flush(lines);
  return lines;
}

TEST(LineSplitter, SplitsAtLineEnds) {
  EXPECT_EQ(split_whole("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(split_whole("a\r\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(split_whole("10%\r20%\rdone\n"), (Lines{"10%", "20%", "done"}));
  EXPECT_EQ(split_whole("\n\n"), Lines{});
  EXPECT_EQ(split_whole("a\tb"), (Lines{"a\tb"}));
  EXPECT_EQ(split_whole(std::string_view("a\0b\n", 4)), (Lines{std::string("a\0b", 3)}));
  EXPECT_EQ(split_whole("\xFFz\n"), (Lines{"\xEF\xBF\xBDz"}));
}

TEST(LineSplitter, AnIncompleteLineWaitsForFlush) {
  LineSplitter splitter;
  Lines lines;
  splitter.add("epoch 1", lines);
  EXPECT_TRUE(lines.empty());
  EXPECT_TRUE(splitter.pending());
  splitter.add(" done\n", lines);
  EXPECT_EQ(lines, (Lines{"epoch 1 done"}));
  EXPECT_FALSE(splitter.pending());
}

TEST(LineSplitter, SplitsLongLinesBetweenCharacters) {
  std::string text;
  while (text.size() < 3 * kLineBytesMax) text += "\xE2\x82\xAC";  // three bytes
  std::string joined;
  for (const auto& line : split_whole(text)) {
    EXPECT_LE(line.size(), kLineBytesMax);
    EXPECT_TRUE(is_utf8(line));
    joined += line;
  }
  EXPECT_EQ(joined, text);
}

TEST(LineSplitter, SplitsLongLinesOfInvalidUtf8) {
  for (const auto& line : split_whole(std::string(2 * kLineBytesMax, '\x80')))
    EXPECT_LE(line.size(), kLineBytesMax);
}

// The lines are the same for any sizes of the pieces.
TEST(LineSplitter, GivesTheSameLinesForAnyPieces) {
  SeededRandom random(7);
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += "ab\xC3\xA4\t\r\n"[random.below(7)];
  const auto whole = split_whole(bytes);
  for (int round = 0; round < 20; ++round) {
    LineSplitter splitter;
    Lines lines;
    for (size_t i = 0; i < bytes.size();) {
      const size_t piece = std::min<size_t>(1 + random.below(9), bytes.size() - i);
      splitter.add(std::string_view(bytes).substr(i, piece), lines);
      i += piece;
    }
    splitter.flush(lines);
    EXPECT_EQ(lines, whole);
  }
}

}  // namespace
}  // namespace trainyard::agent
