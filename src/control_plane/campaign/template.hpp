// Fills in templates: replaces {names} in texts with values.
//
// A name consists of letters, digits, '_' and '.', and begins with a letter or '_'. Other text in
// braces stays as it is; so does ${name}, which the shell replaces. "{{name}}" becomes "{name}".
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

// Returns the text of a value: numbers without unneeded zeros, null as "".
std::string text_of(const Json& value);

Result<std::string> fill_text(std::string_view text, const Values& values);

// Fills in every string of a document. A string that is just {name} becomes a number if the value
// is one, except where AWS requires text (HyperParameters, Environment, parameters, Tags, ..).
Result<Json> fill(const Json& document, const Values& values);

}  // namespace trainyard::campaign
