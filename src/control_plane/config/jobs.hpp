// Reads what applies to all jobs: `isolation`, [jobs], [ulimits] and [spot].
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

Result<void> read_jobs(Table& root, Config& config);

// Device files that every job may name must not be GPUs, which belong to one job at a time. Requires: machines are read.
Result<void> check_devices(const Config& config);

}  // namespace trainyard::config
