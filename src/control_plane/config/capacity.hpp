// Reads the tables about capacity: [[machine]], [[quota]] and [prices].
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

Result<void> read_capacity(Table& root, Config& config);

}  // namespace trainyard::config
