// Maps keys of an object store to file names below a directory.
//
// Threads: pure. Errors: invalid, naming the key in a text for FailureReason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/files/fetch.hpp"
#include "base/result.hpp"

namespace trainyard::agent {

// Returns a key in quotes, as messages show it.
std::string in_quotes(std::string_view key);

// Converts the remainder `rest` of a key to a path without empty parts. Errors also: it cannot be
// the path of a file below a directory ("..", too long, a NUL).
Result<std::string> path_of_key(const std::string& key, std::string_view rest);

// Returns the part of a key behind `prefix` or, when the prefix ends within a name, behind the
// prefix's last slash.
std::string_view below_prefix(const std::string& key, const std::string& prefix);

// Checks that each path is one file, and that no file is another's directory.
Result<void> check_paths(const std::vector<Download>& downloads);

}  // namespace trainyard::agent
