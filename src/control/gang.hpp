// What the launcher is asked to start for an attempt: an order for each of its hosts.
//
// Threads: pure. Private to this room.
#pragma once

#include "control/control.hpp"

namespace trainyard::control {

// Requires: `id` is the job's present attempt. `reuse_host`: it may serve another job afterwards.
// Errors: invalid, for an image or a file system that the config does not have any more.
Result<launch::Gang> gang_of(const Settings& settings, const domain::Job& job, domain::AttemptId id,
                             bool reuse_host = false);

}  // namespace trainyard::control
