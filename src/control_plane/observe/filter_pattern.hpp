// FilterPattern parses CloudWatch's filter patterns and matches messages.
//
//   ERROR "disk full" -debug   all of these terms, anywhere in the message, and none with a minus;
//                              case counts
//   ?ERROR ?WARN               at least one of these terms; ignored next to required terms
//   { $.step > 10 && ($.loss = 0.1 || $.host = "algo-*") }
//                              messages that are JSON: = != < <= > >=, IS NULL, IS TRUE, IS FALSE,
//                              NOT EXISTS, && || ( ), paths like $.a.b[0]['c'][*], * in texts
//
//   [host, user, ..., status = 4*, bytes > 1000 && bytes < 2000]
//                              messages of fields that blanks separate; "a b" and [a b] are one
//                              field; ... stands for any number of fields
//
// Regular expressions (%..%) are not supported; the error names them.
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
  // "" and "*" match all.
  static Result<FilterPattern> parse(std::string_view pattern);
  bool matches(std::string_view message) const;
  // The values of the selectors in the pattern, by selector: "$.step", "$host". nullopt: the
  // message does not match.
  std::optional<std::map<std::string, std::string>> extract(std::string_view message) const;

  struct Condition;  // of a JSON pattern

 private:
  std::vector<std::string> required_, optional_, excluded_;
  std::shared_ptr<const Condition> condition_;  // immutable: copies of the pattern share it
  std::shared_ptr<const FieldPattern> fields_;  // the same
};

// FilterMessage is a message that several selectors look into: it is parsed once, by the first of
// them that needs JSON.
//
// Threads: confined to one. Errors: none. Lifetime: the text outlives it.
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

// FilterSelector finds a value in a message that matched a pattern: "$.a.b[0]" of JSON, "$name" of
// a pattern of fields.
//
// Threads: immutable once parsed. Errors: invalid.
class FilterSelector {
 public:
  static Result<FilterSelector> parse(std::string_view selector);
  // `extracted`: by the pattern, of the same message. nullopt: the message has no such value.
  std::optional<std::string> find(const FilterMessage& message,
                                  const std::map<std::string, std::string>& extracted) const;

 private:
  std::string text_;
  std::shared_ptr<const FilterPattern::Condition> path_;  // nullptr: the name of a field
};

}  // namespace trainyard::observe
