// Filling in: text with {names} becomes text with values.
//
// A name is letters, digits, '_' and '.', and begins with a letter; anything else in braces stays as it is, and so does
// a name after '$', which is the shell's. "{{name}}" is "{name}" as it stands.
//
// Threads: pure. Errors: invalid, naming what is not there and what is.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::campaign {

using Values = std::map<std::string, Json>;  // strings, numbers, booleans, nothing

// A value as it stands in text: numbers without needless zeros, nothing as "".
std::string text_of(const Json& value);

Result<std::string> fill_text(std::string_view text, const Values& values);

// Every string of a document. One that is nothing but {name} becomes a number where the value is one, except where AWS
// has text by rule: HyperParameters, Environment, Parameters, Tags and their like.
Result<Json> fill(const Json& document, const Values& values);

}  // namespace trainyard::campaign
