// Starts containers with trainyard-entry as their init: PID 1, which starts the program, forwards
// signals and reaps orphans (entry/init.hpp). Without an init the program would be PID 1; then it
// would ignore a stop signal unless it has a handler, and run until the end of the grace period.
//
// Threads: callable from anywhere. Errors: those of containers::start_container.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "containers/container.hpp"

namespace trainyard::agent {

using StartContainer = std::function<Result<std::unique_ptr<containers::Container>>(
    const containers::ContainerSpec&, int output)>;

// True for entry, and for the inits that images contain (s6-overlay's is `/init`): they do the same
// work, and most of them refuse to run unless they are the first process.
bool is_init(const std::string& program);

// Returns once the program runs. `entry_program`: entry's path on the machine.
Result<std::unique_ptr<containers::Container>> start_with_init(const StartContainer& start,
                                                               containers::ContainerSpec spec,
                                                               int output,
                                                               const std::string& entry_program);

}  // namespace trainyard::agent
