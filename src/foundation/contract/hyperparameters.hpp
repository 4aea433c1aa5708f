// Reads the hyperparameters of a built-in algorithm by a table with a row for each name.
//
// Unknown names, missing values and invalid values are rejected with the texts of JSON schema
// validation, which most of SageMaker's algorithms use.
//
// Threads: pure functions. Errors: invalid, with the name of the hyperparameter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::contract {

// Returns the text in single quotes, shortened, for errors.
std::string in_quotes(std::string_view text);
// Decodes a JSON string ("\"100\"" -> "100"); other texts stay unchanged. SDKs send both forms.
std::string without_quotes(const std::string& text);
// Returns true for names that SDKs and tuning jobs add for their own use.
bool belongs_to_the_sdk(std::string_view name);

// Parses an integer from `least` to `most`. Errors: invalid, with JSON schema validation's text.
Result<int64_t> parse_integer(const std::string& text, int64_t least, int64_t most);

template <class Settings>
struct Hyperparameter {
  std::string name;
  std::function<Result<void>(Settings&, const std::string&)> read;
  bool required = false;
};

// Reads all values of `given` into `settings`, which has the defaults.
template <class Settings>
Result<void> read_by_table(const std::vector<Hyperparameter<Settings>>& table,
                           const std::map<std::string, std::string>& given, Settings& settings) {
  for (const auto& [name, text] : given) {
    if (belongs_to_the_sdk(name)) continue;
    const auto known = std::ranges::find(table, name, &Hyperparameter<Settings>::name);
    if (known == table.end())
      return invalid("Additional properties are not allowed (" + in_quotes(name) +
                     " was unexpected)");
    TRY(known->read(settings, without_quotes(text)).in("hyperparameter " + name));
  }
  for (const auto& each : table)
    if (each.required && !given.contains(each.name))
      return invalid("'" + each.name + "' is a required property");
  return ok();
}

}  // namespace trainyard::contract
