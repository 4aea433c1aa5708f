// Reads the settings for all jobs: `isolation`, [jobs], [ulimits] and [spot].
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

Result<void> read_jobs(Table& root, Config& config);

// Rejects GPUs among the device files that every job may use, since a GPU is used by one job at a
// time. Requires: machines are read.
Result<void> check_devices(const Config& config);

}  // namespace trainyard::config
