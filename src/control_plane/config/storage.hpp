// Reads the tables about stored data: [storage], [objects], [[storage_quota]], [logs], [audit],
// [catalogue], [file_systems.ID] and [volumes."PATH"].
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

Result<void> read_storage(Table& root, Config& config);

}  // namespace trainyard::config
