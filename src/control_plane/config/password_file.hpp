// Reads a password from the file that a table names with `password_file`.
//
// Threads: any. Errors: those of the file; invalid, for an empty one.
#pragma once

#include <string>

#include "config/table.hpp"

namespace trainyard::config {

// `directory` is the configuration file's, "" or with a slash at its end. `file` is a path in it,
// or an absolute path. `key` is the key of the table that has the path.
Result<std::string> read_password_file(const Table& table, const std::string& directory,
                                       const std::string& file, const char* key = "password_file");

}  // namespace trainyard::config
