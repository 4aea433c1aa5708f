// Matches text with the patterns of policies, which have wildcards and policy variables.
//
// '*' matches any characters, including ':' and '/'; '?' matches exactly one (a code point of
// UTF-8). `${key}` is replaced by the value of a condition key; `${key, 'text'}` has a default;
// `${*}`, `${?}` and `${$}` are the literal characters. The value of a variable is literal: a '*'
// in it is not a wildcard. A variable has a value if the request has exactly one value of the key.
//
// Cost: linear in the text for patterns of '*' and literals; text x (pattern / 64) if a '?' is
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

// Wildcards in compiled text. These bytes do not occur in documents, which are UTF-8.
constexpr char kAnyMany = '\xff', kAnyOne = '\xfe';

// Returns whether the whole `text` matches `pattern`, whose wildcards are kAnyMany and kAnyOne.
bool matches(std::string_view pattern, std::string_view text);
// Matches the six components of ARNs separately, so a wildcard does not match beyond its component.
// The last component is the whole rest.
bool matches_arn(std::string_view pattern, std::string_view text);

struct PatternOptions {
  bool wildcards = true;    // false: '*' and '?' are literal
  bool variables = false;   // documents of version 2012-10-17
  bool lower_case = false;  // actions: compared in lower case
};

class Pattern {
 public:
  // Errors: invalid (a variable without end, or without name).
  static Result<Pattern> compile(std::string_view text, PatternOptions options);

  // Returns whether `text` matches, or nullopt if a variable has no value.
  std::optional<bool> match(std::string_view text, const ConditionValues& values) const;
  // Returns the compiled text with variables replaced, or nullopt if a variable has no value.
  std::optional<std::string> expand(const ConditionValues& values) const;

  bool has_variables() const { return !variables_.empty(); }
  // Requires: a pattern without variables.
  const std::string& text() const { return text_; }
  // Adds the names of the variables in the spelling of the document.
  void add_keys(std::vector<std::string>& keys) const;

 private:
  enum class Shape { any, literal, prefix, general };
  struct Variable {
    size_t at = 0;  // the offset in text_
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
