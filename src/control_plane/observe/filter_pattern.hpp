// CloudWatch's filter patterns: which messages match.
//
//   ERROR "disk full" -debug     all of these, none with a minus (case counts; a term may stand anywhere in
//   the message) ?ERROR ?WARN                 at least one of these; they do not count next to terms that must
//   be there { $.step > 10 && ($.loss = 0.1 || $.host = "algo-*") }
//                                of messages that are JSON: = != < <= > >=, IS NULL, IS TRUE, IS FALSE, NOT
//                                EXISTS,
//                                && || ( ), paths like $.a.b[0]['c'][*], * in texts
//
// Not here: patterns of fields ([a, b]) and regular expressions (%..%); they are refused by name.
//
// Threads: immutable once parsed. Errors: invalid, for people.
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
