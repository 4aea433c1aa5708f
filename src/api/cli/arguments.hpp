// What was typed, read by the form of its command.
//
// Threads: plain values. Errors: invalid, in words that say what to type instead.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::cli {

struct Option {
  std::string name;     // "--watch"
  std::string brief;    // "-w"; "" = none
  bool value = false;   // takes one
  std::string meaning;  // for the help; with the value's name in capitals
};

struct Form {
  std::string command;
  std::vector<std::string> operands;  // "JOB"; "[JOB]" may be left out; "[WORD..]" takes all that follow
  std::vector<Option> options;
  std::string summary;                // one line
  std::string text;                   // what more there is to say
  std::vector<std::string> examples;  // each a whole line
};

struct Arguments {
  std::string command;
  std::vector<std::string> operands;
  std::map<std::string, std::string> values;  // by the long name
  std::set<std::string> flags;
  bool help = false;

  bool has(const std::string& flag) const { return flags.count(flag) > 0; }
  std::string value(const std::string& name, const std::string& otherwise = "") const;
  // "" when it was not given. Errors: invalid, naming the option.
  Result<std::optional<int64_t>> number(const std::string& name) const;
  Result<std::optional<Duration>> duration(const std::string& name) const;
};

// `words` without the command itself. After "--" nothing is an option.
Result<Arguments> read_arguments(const Form& form, const std::vector<std::string>& words);

// "90s", "15m", "2h", "1d", "30" (seconds). Errors: invalid.
Result<Duration> parse_duration(const std::string& text);

// The name that is meant by a mistyped one; "" when none is near.
std::string nearest(const std::string& typed, const std::vector<std::string>& names);

// The command's help: its usage, options and examples.
std::string help_of(const Form& form);

}  // namespace trainyard::cli
