// Reads the table [kubernetes]: jobs run in pods of a Kubernetes cluster instead of this machine.
//
// Threads: pure. Errors: invalid, with the key and the expected value.
#pragma once

#include "config/config.hpp"
#include "config/table.hpp"

namespace trainyard::config {

// Requires: the tables [[machine]] and [slurm] were read.
Result<void> read_kubernetes(Table& root, Config& config);

}  // namespace trainyard::config
