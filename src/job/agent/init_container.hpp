// Starts containers with trainyard-entry as their init: it is PID 1, starts the program, forwards
// signals and reaps orphans (entry/init.hpp). A program that is itself PID 1 and has no handler
// ignores a stop signal, so that stopping it takes the whole grace period.
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

// True for entry, and for the inits that images bring along (s6-overlay's is `/init`), which do the
// same work and mostly insist on being the first process.
bool is_init(const std::string& program);

// Returns once the program runs. `entry_program`: entry's path on the machine.
Result<std::unique_ptr<containers::Container>> start_with_init(const StartContainer& start,
                                                               containers::ContainerSpec spec,
                                                               int output,
                                                               const std::string& entry_program);

}  // namespace trainyard::agent
