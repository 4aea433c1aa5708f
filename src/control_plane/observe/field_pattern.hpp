// A FieldPattern is a filter pattern for messages whose fields are separated by spaces.
//
//   [host, user, ..., status = 4*, bytes > 1000 && bytes < 2000]
//
// A pattern has one element for each field. An element without a name matches any value.
//
// Threads: immutable. Errors: invalid, with a message for the client.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::observe {

inline constexpr size_t kPatternFieldsMax = 100;

class FieldPattern {
 public:
  static Result<FieldPattern> parse(std::string_view pattern);
  // Returns the fields by name ("$host") or number ("$2"), or nullopt if the message does not
  // match.
  std::optional<std::map<std::string, std::string>> extract(std::string_view message) const;

 private:
  enum class Comparison { equal, not_equal, less, at_most, greater, at_least };
  struct Condition {
    Comparison comparison = Comparison::equal;
    std::string text;
    std::optional<double> number;
    bool holds(std::string_view value) const;
  };
  struct Field {
    std::string name;                                     // "": the field has no name
    bool any_number = false;                              // true: "..."
    std::vector<std::vector<Condition>> any_of_all = {};  // empty: no condition
    bool holds(std::string_view value) const;
  };
  static Result<Field> parse_field(std::string_view text);

  std::vector<Field> fields_;
};

// Returns whether a text matches a pattern in which '*' matches any text. The time is linear.
bool matches_wildcards(std::string_view pattern, std::string_view text);

}  // namespace trainyard::observe
