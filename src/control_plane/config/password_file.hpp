// Reads a password from the file that a table names with `password_file`.
//
// Threads: any. Errors: those of the file; invalid, for an empty one.
#pragma once

#include <string>

#include "config/table.hpp"

namespace trainyard::config {

// `directory`: of the configuration file, "" or ending in '/'. `file` is next to it, or an
// absolute path.
// `key`: the key of the table that names the file.
Result<std::string> read_password_file(const Table& table, const std::string& directory,
                                       const std::string& file, const char* key = "password_file");

}  // namespace trainyard::config
