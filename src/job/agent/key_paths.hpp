// What keys of an object store are called as files below a directory.
//
// Threads: pure. Errors: invalid, naming the key in words for FailureReason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/fetch.hpp"
#include "base/result.hpp"

namespace trainyard::agent {

// A key as people are shown it.
std::string in_quotes(std::string_view key);

// The path of a key's remainder, without empty parts. Errors also: it cannot be a file below a directory
// ("..", too long, a NUL).
Result<std::string> path_of_key(const std::string& key, std::string_view rest);

// What of a key is its path when a channel names `prefix`: what follows it, or, when the prefix ends within a
// name, what follows its last slash.
std::string_view below_prefix(const std::string& key, const std::string& prefix);

// Each path is one file, and no file is another's directory.
Result<void> check_paths(const std::vector<Download>& downloads);

}  // namespace trainyard::agent
