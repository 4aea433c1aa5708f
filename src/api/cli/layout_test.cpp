#include "cli/layout.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

const OutputStyle kNoTerminal{};
const OutputStyle kFull{.colours = true, .live = true, .unicode = true, .columns = 40, .rows = 24};

TEST(StyleOf, UsesColoursAndBarsIfTheTerminalSupportsThem) {
  struct Row {
    const char* about;
    TerminalEnvironment environment;
    bool live, colours, unicode;
    int columns;
  };
  const Row rows[] = {
      {"a terminal", {true, 100, 30, "", "xterm-256color", "en_GB.UTF-8"}, true, true, true, 100},
      {"a pipe", {false, 0, 0, "", "xterm-256color", "en_GB.UTF-8"}, false, false, false, 0},
      {"NO_COLOR", {true, 100, 30, "1", "xterm", "C.utf8"}, true, false, true, 100},
      {"dumb", {true, 100, 30, "", "dumb", "C.UTF-8"}, false, false, false, 100},
      {"no TERM", {true, 100, 30, "", "", "C.UTF-8"}, false, false, false, 100},
      {"another locale", {true, 100, 30, "", "xterm", "C"}, true, true, false, 100},
      {"no size known", {true, 0, 0, "", "xterm", "C"}, true, true, false, 80},
  };
  for (const Row& row : rows) {
    const OutputStyle style = style_of(row.environment);
    EXPECT_EQ(style.live, row.live) << row.about;
    EXPECT_EQ(style.colours, row.colours) << row.about;
    EXPECT_EQ(style.unicode, row.unicode) << row.about;
    EXPECT_EQ(style.columns, row.columns) << row.about;
  }
}

TEST(Layout, MeasuresWidthsInColumns) {
  EXPECT_EQ(width_of("abc"), 3);
  EXPECT_EQ(width_of("\033[1mabc\033[0m"), 3);
  EXPECT_EQ(width_of("Zürich"), 6);
  EXPECT_EQ(width_of("訓練"), 4);
  EXPECT_EQ(width_of("e\u0301"), 1);
  EXPECT_EQ(width_of("\xff"), 1);
}

TEST(Layout, CutsTextsThatAreTooWide) {
  EXPECT_EQ(fit(kFull, "abcdef", 6), "abcdef");
  EXPECT_EQ(fit(kFull, "abcdefg", 6), "abcde…");
  EXPECT_EQ(fit(kNoTerminal, "abcdefg", 6), "abcde~");
  EXPECT_EQ(fit(kFull, "訓練訓練", 4), "訓…");
  EXPECT_EQ(fit(kFull, "\033[1mabcdefg\033[0m", 4), "\033[1mabc…\033[0m");
  EXPECT_EQ(fit(kFull, "abc", 0), "");
  EXPECT_EQ(fit_middle(kFull, "pytorch-training-0815", 12), "pytorc…-0815");
  EXPECT_EQ(fit_middle(kNoTerminal, "pytorch-training-0815", 12), "pytorc~-0815");
  EXPECT_EQ(fit_middle(kFull, "訓練訓練訓練", 7), "訓…訓練");
  EXPECT_EQ(fit_middle(kFull, "short", 5), "short");
  EXPECT_EQ(fit_middle(kFull, "longer", 4), "lon…");
  EXPECT_EQ(pad(kNoTerminal, "ab", 4), "ab  ");
  EXPECT_EQ(pad(kNoTerminal, "ab", 4, true), "  ab");
}

TEST(Layout, DrawsBarsAndSparklines) {
  EXPECT_EQ(bar(kNoTerminal, 0, 12), "[..........]");
  EXPECT_EQ(bar(kNoTerminal, 0.5, 12), "[#####.....]");
  EXPECT_EQ(bar(kNoTerminal, 2, 12), "[##########]");
  EXPECT_EQ(bar(kFull, 0.5, 4), "██░░");
  EXPECT_EQ(bar(kFull, 0.53, 4), "██▏░");
  EXPECT_EQ(bar(kFull, 1, 4), "████");
  EXPECT_EQ(bar(kFull, -1, 2), "░░");
  EXPECT_EQ(sparkline(kFull, {0, 50, 100, 200}, 100), "▁▅██");
  EXPECT_EQ(sparkline(kNoTerminal, {1}, 1), "");
}

TEST(Layout, FormatsShortDurations) {
  EXPECT_EQ(duration_text(-5s), "0s");
  EXPECT_EQ(duration_text(42s), "42s");
  EXPECT_EQ(duration_text(245s), "4m05s");
  EXPECT_EQ(duration_text(2h + 3min), "2h03m");
  EXPECT_EQ(duration_text(76h), "3d04h");
  EXPECT_EQ(time_text(from_milliseconds(1'763'631'900'000)), "2025-11-20 09:45:00Z");
}

TEST(Layout, UntrustedTextDoesNotControlTheTerminal) {
  EXPECT_EQ(harmless(kFull, "\033[31mred\033[0m"), "\033[31mred\033[0m");
  EXPECT_EQ(harmless(kFull, "\033[31mred"), "\033[31mred\033[0m");
  EXPECT_EQ(harmless(kNoTerminal, "\033[31mred\033[0m"), "red");
  EXPECT_EQ(harmless(kFull, "\033]0;title\a\033[2J"), "?]0;title??[2J");
  EXPECT_EQ(harmless(kNoTerminal, " 10%\r 20%\tdone"), " 10%  20%\tdone");
  EXPECT_EQ(harmless(kNoTerminal, "caf\u00e9 \u009b31m"), "caf\u00e9 ?31m");
  EXPECT_EQ(harmless(kFull, "abc\u202ecba"), "abc?cba");  // the rest would be written backwards
}

TEST(Layout, IllFormedUtf8DoesNotHideControlCharacters) {
  EXPECT_EQ(harmless(kFull, "\xc3\033[2J"), "??[2J");  // a lead byte without its tail
  EXPECT_EQ(harmless(kFull, "\xc0\x9b[2J"), "??[2J");  // an overlong escape
  EXPECT_EQ(harmless(kFull, "\x9b[2J"), "?[2J");       // an escape of one byte
  EXPECT_EQ(harmless(kFull, "\xed\xa0\x80 \xf4\x90\x80\x80 \xff"), "??? ???? ?");
  EXPECT_EQ(harmless(kFull, "\xe2\x82"), "??");  // truncated
}

TEST(Layout, PlainTextHasNeitherColoursNorLineEnds) {
  EXPECT_EQ(plain_text("\033[31mred\033[0m\a"), "red?");
  EXPECT_EQ(plain_text("KeyError: 'x'\n\nin train.py\r\n"), "KeyError: 'x' in train.py ");
  EXPECT_EQ(plain_lines("Traceback:\r\n\tfile\n50%\r60%"), "Traceback:\n    file\n50% 60%");
  EXPECT_EQ(plain_lines("\xc3\033[2J"), "??[2J");
}

}  // namespace
}  // namespace trainyard::cli
