// Matches text with the patterns of policies, which have wildcards and policy variables.
//
// '*' stands for any characters, ':' and '/' included, '?' for exactly one (a code point of UTF-8).
// `${key}` stands for the value of a condition key, `${key, 'text'}` has a default; `${*}`, `${?}`
// and `${$}` are the characters themselves. The value of a variable is literal: its '*' is no
// wildcard. A variable has a value when the request has the key with exactly one value.
//
// Cost: linear in the text for patterns of '*' and literals; text x (pattern / 64) where '?' stands
// between two '*'.
//
// Threads: immutable after compiling.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/condition_values.hpp"

namespace trainyard::policy {

// Wildcards inside compiled text. Neither byte occurs in UTF-8, which a document is.
constexpr char kAnyMany = '\xff', kAnyOne = '\xfe';

// True if `text` as a whole matches `pattern`, whose wildcards are kAnyMany and kAnyOne.
bool matches(std::string_view pattern, std::string_view text);
// The same by the six components of an ARN: a wildcard stays within its component, the last has all
// the rest.
bool matches_arn(std::string_view pattern, std::string_view text);

struct PatternOptions {
  bool wildcards = true;    // else '*' and '?' are themselves
  bool variables = false;   // documents of version 2012-10-17
  bool lower_case = false;  // actions: compared in lower case
};

class Pattern {
 public:
  // Errors: invalid (a variable that does not end, an empty one).
  static Result<Pattern> compile(std::string_view text, PatternOptions options);

  // True if `text` matches. nullopt: a variable has no value.
  std::optional<bool> match(std::string_view text, const ConditionValues& values) const;
  // The text with its variables' values and compiled wildcards. nullopt: a variable has no value.
  std::optional<std::string> expand(const ConditionValues& values) const;

  bool has_variables() const { return !variables_.empty(); }
  // Requires: a pattern without variables.
  const std::string& text() const { return text_; }
  // Names as the document spells them.
  void add_keys(std::vector<std::string>& keys) const;

 private:
  enum class Shape { any, literal, prefix, general };
  struct Variable {
    size_t at = 0;  // its offset in text_
    std::string key, lower_key;
    std::optional<std::string> fallback;
  };
  bool match_text(std::string_view text) const;
  Result<size_t> compile_variable(std::string_view text, size_t at);
  void find_shape();

  Shape shape_ = Shape::general;
  std::string text_;
  std::vector<Variable> variables_;
};

}  // namespace trainyard::policy
