// A Pattern matches texts. It is a regular expression, a text in which '*' matches any characters,
// or a literal text.
//
// The time of a match is linear in the text (RE2), and its memory is limited to kPatternMemoryMax.
//
// Threads: immutable. Errors: invalid, with RE2's reason.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace re2 {
class RE2;
}

namespace trainyard::insights {

inline constexpr size_t kPatternMemoryMax = 4 << 20;  // bytes that RE2 may use for one pattern
inline constexpr size_t kPatternGroupsMax = 64;

class Pattern {
 public:
  // Compiles the expression in /../. Named groups are (?<name>..) or (?P<name>..).
  static Result<std::shared_ptr<const Pattern>> regex(std::string_view expression);
  // Compiles a glob of the command `parse`; each '*' is a group.
  static Result<std::shared_ptr<const Pattern>> glob(std::string_view glob);
  // Makes a pattern that matches the text literally, for `like`.
  static std::shared_ptr<const Pattern> literal(std::string text);
  ~Pattern();
  Pattern(const Pattern&) = delete;

  bool found_in(std::string_view text) const;
  size_t groups() const;
  // Returns the names of the groups; "" for a group without a name.
  std::vector<std::string> names() const;
  // Stores the texts of the groups of the first match. Returns false if there is no match.
  bool capture(std::string_view text, std::vector<std::string>& groups) const;
  // Replaces each match with `by`. Returns `text` if the result is longer than `bytes_max`.
  std::string replaced(const std::string& text, std::string_view by, size_t bytes_max) const;

 private:
  Pattern() = default;
  std::unique_ptr<const re2::RE2> regex_;
  std::string literal_;  // each match begins with it
  bool literal_only_ = false;
};

}  // namespace trainyard::insights
