// FieldPattern is a filter pattern for messages of fields that blanks separate.
//
//   [host, user, ..., status = 4*, bytes > 1000 && bytes < 2000]
//
// A pattern has one element for each field; an element without a name is a field of any value.
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
  // The fields by name, "$host", or by number, "$2". nullopt: the message does not match.
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
    std::string name;                                     // "": it has none
    bool any_number = false;                              // "..."
    std::vector<std::vector<Condition>> any_of_all = {};  // empty: no condition
    bool holds(std::string_view value) const;
  };
  static Result<Field> parse_field(std::string_view text);

  std::vector<Field> fields_;
};

// Compares a text with a pattern in which '*' stands for any text, in linear time.
bool matches_wildcards(std::string_view pattern, std::string_view text);

}  // namespace trainyard::observe
