// A FilterPattern is a filter pattern of CloudWatch, which matches messages.
//
//   ERROR "disk full" -debug   all of these terms, anywhere in the message, and none of those with
//                              a minus; terms are case-sensitive
//   ?ERROR ?WARN               at least one of these terms; ignored next to required terms
//   { $.step > 10 && ($.loss = 0.1 || $.host = "algo-*") }
//                              messages that are JSON: = != < <= > >=, IS NULL, IS TRUE, IS FALSE,
//                              NOT EXISTS, && || ( ), paths like $.a.b[0]['c'][*], * in texts
//
//   [host, user, ..., status = 4*, bytes > 1000 && bytes < 2000]
//                              messages whose fields are separated by spaces; "a b" and [a b] are
//                              one field; ... matches any number of fields
//
// Regular expressions (%..%) are not supported; the error says so.
//
// Threads: immutable once parsed. Errors: invalid, with a message for the client.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::observe {

inline constexpr size_t kPatternBytesMax = 1024;

class FieldPattern;  // field_pattern.hpp

class FilterPattern {
 public:
  // Parses a pattern. "" and "*" match all messages.
  static Result<FilterPattern> parse(std::string_view pattern);
  bool matches(std::string_view message) const;
  // Returns the values of the selectors in the pattern, by selector ("$.step", "$host"), or nullopt
  // if the message does not match.
  std::optional<std::map<std::string, std::string>> extract(std::string_view message) const;

  struct Condition;  // of a JSON pattern

 private:
  std::vector<std::string> required_, optional_, excluded_;
  std::shared_ptr<const Condition> condition_;  // immutable: copies of the pattern share it
  std::shared_ptr<const FieldPattern> fields_;  // immutable: copies of the pattern share it
};

// A FilterMessage is a message in which several selectors find values. It is parsed once, when the
// first selector needs JSON.
//
// Threads: confined to one thread. Errors: none. Lifetime: the text outlives it.
class FilterMessage {
 public:
  explicit FilterMessage(std::string_view text);
  ~FilterMessage();
  FilterMessage(const FilterMessage&) = delete;

 private:
  friend class FilterSelector;
  struct Parsed;
  const Parsed& parsed() const;

  const std::string_view text_;
  mutable std::unique_ptr<const Parsed> parsed_;  // nullptr: not yet
};

// A FilterSelector finds a value in a message that matched a pattern: "$.a.b[0]" in JSON, "$name"
// in a pattern of fields.
//
// Threads: immutable once parsed. Errors: invalid.
class FilterSelector {
 public:
  static Result<FilterSelector> parse(std::string_view selector);
  // Returns the value, or nullopt if the message does not have it. `extracted`: the result of
  // FilterPattern::extract() for the same message.
  std::optional<std::string> find(const FilterMessage& message,
                                  const std::map<std::string, std::string>& extracted) const;

 private:
  std::string text_;
  std::shared_ptr<const FilterPattern::Condition> path_;  // nullptr: the name of a field
};

}  // namespace trainyard::observe
