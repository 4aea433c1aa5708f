// Parses the command line arguments of a command, as its Form describes them.
//
// Threads: plain values. Errors: invalid, with a message that names valid arguments.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::cli {

struct Option {
  std::string name;     // "--watch"
  std::string brief;    // "-w"; "" = none
  bool value = false;   // true: the option takes a value
  std::string meaning;  // for the help, with the value's name in capitals
};

struct Form {
  std::string command;
  // "JOB"; "[JOB]" is optional; "[WORD..]" stands for all further words.
  std::vector<std::string> operands;
  std::vector<Option> options;
  std::string summary;                // one line
  std::string text;                   // further paragraphs of the help
  std::vector<std::string> examples;  // each a whole line
};

struct Arguments {
  std::string command;
  std::vector<std::string> operands;
  std::map<std::string, std::string> values;  // by the long name; the last one counts
  std::vector<std::pair<std::string, std::string>> ordered;  // all options with values, in order
  std::set<std::string> flags;
  bool help = false;

  bool has(const std::string& flag) const { return flags.count(flag) > 0; }
  std::string value(const std::string& name, const std::string& otherwise = "") const;
  // Both return nullopt if the option is absent. Errors: invalid, naming the option.
  Result<std::optional<int64_t>> number(const std::string& name) const;
  Result<std::optional<Duration>> duration(const std::string& name) const;
};

// `words` are the arguments after the command. After "--" all words are operands.
Result<Arguments> read_arguments(const Form& form, const std::vector<std::string>& words);

// Parses "90s", "15m", "2h", "1d" or "30" (seconds). Errors: invalid.
Result<Duration> parse_duration(const std::string& text);

inline constexpr int kHelpColumns = 80;
// Formats the command's help: its usage, options and examples, in lines of at most kHelpColumns.
std::string help_of(const Form& form);

}  // namespace trainyard::cli
