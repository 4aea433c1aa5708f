// Reads the tables about principals: [[access_key]], [[user]], [[group]], [[role]], [[policy]],
// [[peer]], [posix_users] and [rate_limits].
//
// Threads: pure, except for the files that policies name.
// Errors:  invalid, with the key and the expected value; those of files.
#pragma once

#include <string>

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

// Texts of errors for names that is_user rejects.
inline constexpr std::string_view kUserAccepted = "1 to 64 letters, digits or any of +=,.@_-";
inline constexpr std::string_view kPrincipalAccepted =
    "the name of a user or a role: 1 to 64 letters, digits or any of +=,.@_-";

// Returns true for a name of 1 to 64 characters that IAM allows.
bool is_user(const std::string& name);
// Reads the keys `users` and `roles` of a table: the principals that may use a shared directory.
Result<void> read_sharing(Table& table, domain::FileSystem& file_system);

// `directory` is the configuration file's, with a slash at its end.
Result<void> read_principals(Table& root, const std::string& directory, Config& config);

}  // namespace trainyard::config
