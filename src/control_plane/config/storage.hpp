// Reads the tables about stored data: [storage], [objects], [[storage_quota]], [logs], [audit],
// [ledger], [catalogue], [file_systems.ID], [fsx] and [volumes."PATH"].
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

// `directory` is the configuration file's, "" or with a slash at its end.
Result<void> read_storage(Table& root, const std::string& directory, Config& config);

}  // namespace trainyard::config
