#include "cli/table.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

const OutputStyle kFile{};

OutputStyle terminal_of(int columns) {
  return {.colours = false, .live = true, .unicode = true, .columns = columns, .rows = 24};
}

const std::vector<Column> kColumns{{.title = "name", .width_min = 8, .overflow = Overflow::middle},
                                   {.title = "hosts", .drop = 2},
                                   {.title = "cost", .right = true, .drop = 1},
                                   {.title = "empty"},
                                   {.title = "why",
                                    .width_min = 16,
                                    .drop = 3,
                                    .overflow = Overflow::wrap,
                                    .below = true,
                                    .lines_max = 2}};
const std::vector<std::vector<Cell>> kRows{
    {{"mnist"}, {"2 x m5"}, {"12.00"}, {""}, {"waits for 2 GPUs that another job holds"}},
    {{"a-long-name-0815"}, {"1 x m5"}, {"0.50"}, {""}, {""}}};

TEST(Table, ShowsAllColumnsUncutInAFile) {
  EXPECT_EQ(table(kFile, kColumns, kRows),
            "name              hosts    cost  why\n"
            "mnist             2 x m5  12.00  waits for 2 GPUs that another job holds\n"
            "a-long-name-0815  1 x m5   0.50\n");
}

TEST(Table, WrapsThenLeavesOutColumnsOnANarrowTerminal) {
  EXPECT_EQ(table(terminal_of(60), kColumns, kRows),
            "name              hosts    cost  why\n"
            "mnist             2 x m5  12.00  waits for 2 GPUs that\n"
            "                                 another job holds\n"
            "a-long-name-0815  1 x m5   0.50\n");
  EXPECT_EQ(table(terminal_of(36), kColumns, kRows),
            "name              hosts    cost\n"
            "mnist             2 x m5  12.00\n"
            "  waits for 2 GPUs that another job\n"
            "  holds\n"
            "a-long-name-0815  1 x m5   0.50\n");
  EXPECT_EQ(table(terminal_of(20), kColumns, kRows),
            "name            cost\n"
            "mnist          12.00\n"
            "  waits for 2 GPUs\n"
            "  that another job…\n"
            "a-long…e-0815   0.50\n");
  EXPECT_EQ(table(terminal_of(12), kColumns, kRows),
            "name\n"
            "mnist\n"
            "  waits for\n"
            "  2 GPUs…\n"
            "a-long…-0815\n");
}

TEST(Table, EndsACutTextWithOneEllipsis) {
  const std::vector<Column> columns{{.title = "why", .overflow = Overflow::wrap, .lines_max = 1}};
  EXPECT_EQ(table(terminal_of(8), columns, {{{"add twelve machines"}}}), "why\nadd…\n");
  EXPECT_EQ(table(terminal_of(10), columns, {{{"add twelve machines"}}}), "why\nadd twelv…\n");
}

TEST(Table, ReplacesControlCharacters) {
  EXPECT_EQ(table(kFile, {{"name"}, {"why"}}, {{{"\033[2J\a"}, {"KeyError: 'x'\n\nin train.py"}}}),
            "name   why\n"
            "?[2J?  KeyError: 'x' in train.py\n");
  EXPECT_EQ(table(kFile, {{"\033]0;x\a"}}, {{{"value"}}}), "?]0;x?\nvalue\n");
}

TEST(Table, ColoursTextsWithoutTheirPadding) {
  OutputStyle style = terminal_of(80);
  style.colours = true;
  EXPECT_EQ(table(style, {{"a", true}, {"b"}}, {{{"1", Paint::red}, {"x y", Paint::green}}}),
            "\033[2ma\033[0m  \033[2mb\033[0m\n"
            "\033[31m1\033[0m  \033[32mx y\033[0m\n");
}

TEST(Table, FitsEveryTerminal) {
  const std::vector<std::vector<Cell>> rows{
      {{std::string(63, 'n')}, {"2 x ml.m5.large"}, {"1234.00 USD"}, {"x"}, {std::string(90, 'w')}},
      {{"訓練訓練訓練訓練"},
       {"1"},
       {""},
       {""},
       {"s3://bucket/a/path/that/has/no/blanks/at/all/x.tar"}},
      {{"e\u0301\xff\033[2J"}, {""}, {"1"}, {""}, {"a b c d e f g h i j k l m n o p q r s t u v"}}};
  for (int width = 4; width <= 200; ++width)
    for (const auto& line : wrap(table(terminal_of(width), kColumns, rows), 0))
      EXPECT_LE(width_of(line), width) << line;
}

TEST(Wrap, BreaksLinesAtBlanks) {
  const auto lines = wrap("waits for 8 GPUs that mnist holds", 12);
  EXPECT_EQ(lines, (std::vector<std::string>{"waits for 8", "GPUs that", "mnist holds"}));
  EXPECT_EQ(wrap("", 5), std::vector<std::string>{""});
  EXPECT_EQ(wrap("one line", 0), std::vector<std::string>{"one line"});
}

TEST(Wrap, KeepsLineEndsAndIndentation) {
  EXPECT_EQ(wrap("Traceback\n\n  File train.py, line 3\n", 14),
            (std::vector<std::string>{"Traceback", "", "  File", "train.py, line", "3"}));
}

TEST(Wrap, BreaksALongWordAfterPunctuation) {
  EXPECT_EQ(wrap("in s3://bucket/models/digits/model.tar.gz now", 18),
            (std::vector<std::string>{"in", "s3://bucket/", "models/digits/", "model.tar.gz now"}));
  EXPECT_EQ(wrap("abcdefghij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap("訓練訓", 3), (std::vector<std::string>{"訓", "練", "訓"}));
}

TEST(Paragraph, IndentsItsLinesByTheLabel) {
  EXPECT_EQ(paragraph(terminal_of(30), "waits for 8 GPUs that mnist holds", Paint::none, "why", 6),
            "why   waits for 8 GPUs that\n"
            "      mnist holds\n");
  EXPECT_EQ(paragraph(kFile, "Traceback:\n  line\033[2J", Paint::none, "failed", 8),
            "failed  Traceback:\n"
            "          line?[2J\n");
}

}  // namespace
}  // namespace trainyard::cli
