#include "cli/arguments.hpp"

#include <gtest/gtest.h>

#include "cli/cli.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {
namespace {

const Form kForm{"logs",
                 {"JOB", "[HOST]"},
                 {{"--follow", "-f", false, "go on"}, {"--since", "", true, "the last DURATION"}},
                 "The log.",
                 "",
                 {"trainyard logs -f mnist-1"}};

TEST(ReadArguments, SeparatesOperandsOptionsAndValues) {
  const auto read = read_arguments(kForm, {"-f", "mnist", "--since", "2h", "--", "-x"});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->operands, (std::vector<std::string>{"mnist", "-x"}));
  EXPECT_TRUE(read->has("--follow"));
  EXPECT_EQ(*read->duration("--since"), Duration(2h));
  EXPECT_EQ(read_arguments(kForm, {"a", "--since=5"})->value("--since"), "5");
  EXPECT_TRUE(read_arguments(kForm, {"--help", "--nonsense"})->help);
}

TEST(ReadArguments, ErrorsIncludeUsageOrASuggestion) {
  struct Row {
    std::vector<std::string> words;
    const char* message;
  };
  const Row rows[] = {
      {{}, "missing argument JOB. Usage: trainyard logs JOB [HOST] [options]"},
      {{"a", "b", "c"}, "unexpected argument 'c'. Usage: trainyard logs JOB [HOST] [options]"},
      {{"a", "--folow"},
       "unknown option '--folow'; did you mean --follow? (`trainyard logs --help` lists the "
       "options)"},
      {{"a", "--since"}, "--since needs a value. Usage: trainyard logs JOB [HOST] [options]"},
      {{"a", "--follow=1"}, "--follow takes no value"},
  };
  for (const Row& row : rows) {
    const auto read = read_arguments(kForm, row.words);
    ASSERT_FALSE(read) << row.message;
    EXPECT_EQ(read.error().message, row.message);
  }
}

TEST(ReadArguments, GivesACommandAllWordsThatFollow) {
  const Form form{"shell", {"JOB", "HOST", "[COMMAND..]"}, {}, "", "", {}};
  EXPECT_EQ(read_arguments(form, {"a", "1", "ls", "--", "-l"})->operands.size(), 4u);
}

TEST(ParseDuration, ReadsNumbersWithAUnit) {
  EXPECT_EQ(*parse_duration("90"), Duration(90s));
  EXPECT_EQ(*parse_duration("15m"), Duration(15min));
  EXPECT_EQ(*parse_duration("7d"), Duration(7 * 24h));
  for (const char* wrong : {"", "x", "5 m", "-1s", "1w", "99999999999d", "1.5h"})
    EXPECT_FALSE(parse_duration(wrong)) << wrong;
  EXPECT_EQ(parse_duration("1w").error().message, "invalid duration '1w': use 90s, 15m, 2h or 1d");
}

TEST(HelpOf, HasAnExampleOfEveryCommand) {
  for (const Form& form : forms()) {
    EXPECT_FALSE(form.examples.empty()) << form.command;
    EXPECT_FALSE(form.summary.empty()) << form.command;
    for (const auto& example : form.examples)
      EXPECT_TRUE(example.starts_with("trainyard " + form.command)) << example;
    for (const auto& line : wrap(help_of(form), 0))
      EXPECT_LE(width_of(line), kHelpColumns) << form.command << ": " << line;
  }
  EXPECT_EQ(help_of(kForm),
            "usage: trainyard logs JOB [HOST] [options]\n\nThe log.\n\n"
            "  -f, --follow  go on\n"
            "  --since       the last DURATION\n\n"
            "examples:\n  trainyard logs -f mnist-1\n");
}

}  // namespace
}  // namespace trainyard::cli
