// FilterPattern parses CloudWatch's filter patterns and matches messages.
//
//   ERROR "disk full" -debug   all of these terms, anywhere in the message, and none with a minus;
//                              case counts
//   ?ERROR ?WARN               at least one of these terms; ignored next to required terms
//   { $.step > 10 && ($.loss = 0.1 || $.host = "algo-*") }
//                              messages that are JSON: = != < <= > >=, IS NULL, IS TRUE, IS FALSE,
//                              NOT EXISTS, && || ( ), paths like $.a.b[0]['c'][*], * in texts
//
// Patterns of fields ([a, b]) and regular expressions (%..%) are not supported; the error names
// them.
//
// Threads: immutable once parsed. Errors: invalid, with a message for the client.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::observe {

inline constexpr size_t kPatternBytesMax = 1024;

class FilterPattern {
 public:
  // "" matches all.
  static Result<FilterPattern> parse(std::string_view pattern);
  bool matches(std::string_view message) const;

  struct Condition;  // of a JSON pattern

 private:
  std::vector<std::string> required_, optional_, excluded_;
  std::shared_ptr<const Condition> condition_;  // immutable: copies of the pattern share it
};

}  // namespace trainyard::observe
