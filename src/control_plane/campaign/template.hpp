// Fills in templates: text with {names} becomes text with values.
//
// A name is letters, digits, '_' and '.', and begins with a letter; other text in braces stays as
// it is, and so does a name after '$', which is the shell's. "{{name}}" is literally "{name}".
//
// Threads: pure. Errors: invalid, naming what is missing and what is known.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::campaign {

using Values = std::map<std::string, Json>;  // strings, numbers, booleans, nothing

// The text of a value: numbers without unneeded zeros, null as "".
std::string text_of(const Json& value);

Result<std::string> fill_text(std::string_view text, const Values& values);

// Fills in every string of a document. A string that is only {name} becomes a number where the
// value is one, except where AWS requires text: HyperParameters, Environment, Parameters, Tags and
// the like.
Result<Json> fill(const Json& document, const Values& values);

}  // namespace trainyard::campaign
