// Converts hyperparameters to texts that are equal to those of SageMaker's own toolkit, and so of
// Python: scripts compare them.
//
// One difference: NaN, Infinity and whole numbers beyond 64 bits stay texts.
//
// Threads: pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace trainyard::entry {

using Values = std::map<std::string, Json>;

// Returns json.loads(text), or the text itself where that fails.
Json value_of(std::string_view text);
// Returns json.dumps(value, sort_keys=True, separators=(",", ":")), in ASCII.
std::string python_json(const Json& value);
// Returns a variable's value: text unchanged, None as "", all else as JSON.
std::string variable_text(const Json& value);
// Returns str(value), with an object as "a=1,b=2" and None as "".
std::string argument_text(const Json& value);
// Returns "--name value" for each, ordered by name; "-n value" when the name is one character.
std::vector<std::string> user_arguments(const Values& values);
// Returns shlex.quote(text): one word for a POSIX shell.
std::string shell_word(std::string_view text);

}  // namespace trainyard::entry
