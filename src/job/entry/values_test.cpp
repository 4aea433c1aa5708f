#include "entry/values.hpp"

#include <gtest/gtest.h>

namespace trainyard::entry {
namespace {

// Python 3.11's output for json.loads(text): str(value), and json.dumps as the toolkit calls it.
TEST(Values, AreReadAndWrittenAsPythonDoes) {
  const struct {
    const char *text, *argument, *variable;
  } kTable[] = {
      {"3", "3", "3"},
      {" 7 ", "7", "7"},
      {"0.10", "0.1", "0.1"},
      {"1E3", "1000.0", "1000.0"},
      {"1e15", "1000000000000000.0", "1000000000000000.0"},
      {"1e16", "1e+16", "1e+16"},
      {"0.0001", "0.0001", "0.0001"},
      {"0.00001", "1e-05", "1e-05"},
      {"5e-324", "5e-324", "5e-324"},
      {"-0.0", "-0.0", "-0.0"},
      {"123456789012345.5", "123456789012345.5", "123456789012345.5"},
      {"true", "True", "true"},
      {"null", "", ""},
      {"", "", ""},
      {"hello world", "hello world", "hello world"},
      {"\"quoted\"", "quoted", "quoted"},
      {"[1, 2.5, \"it's\", null, true]", "[1, 2.5, \"it's\", None, True]",
       "[1,2.5,\"it's\",null,true]"},
      {"{\"b\": 1, \"a\": \"x\", \"c\": null}", "a=x,b=1,c=None",
       "{\"a\":\"x\",\"b\":1,\"c\":null}"},
      {"{\"z\": {\"y\": [1]}}", "z={'y': [1]}", "{\"z\":{\"y\":[1]}}"},
      {"[\"a'b\\\"c\"]", "['a\\'b\"c']", "[\"a'b\\\"c\"]"},
      {"[\"\\u00e9\\ud83d\\ude00\"]", "['\xC3\xA9\xF0\x9F\x98\x80']",
       "[\"\\u00e9\\ud83d\\ude00\"]"},
      // Ours: beyond 64 bits a number stays a text.
      {"123456789012345678901234567890", "123456789012345678901234567890",
       "123456789012345678901234567890"},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(argument_text(value_of(row.text)), row.argument) << row.text;
    EXPECT_EQ(variable_text(value_of(row.text)), row.variable) << row.text;
  }
}

TEST(Values, BecomeArgumentsInOrder) {
  const Values values = {{"lr", 0.1}, {"b", 2}, {"epochs", 3}, {"\xC3\xA9", "e"}};
  EXPECT_EQ(user_arguments(values), (std::vector<std::string>{"-b", "2", "--epochs", "3", "--lr",
                                                              "0.1", "-\xC3\xA9", "e"}));
}

TEST(Values, AreQuotedForAShell) {
  EXPECT_EQ(shell_word("plain-1.0/x"), "plain-1.0/x");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("it's $HOME"), "'it'\"'\"'s $HOME'");
}

}  // namespace
}  // namespace trainyard::entry
