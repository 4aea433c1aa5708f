// Reads the table [slurm]: jobs run on the nodes of a Slurm cluster instead of this machine.
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

Result<void> read_slurm(Table& root, Config& config);

}  // namespace trainyard::config
