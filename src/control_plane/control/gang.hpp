// What the launcher is asked to start for an attempt: an order for each of its hosts.
//
// Threads: pure. Private to this room.
#pragma once

#include "control/control.hpp"

namespace trainyard::control {

// Requires: `id` is the job's present attempt. `now` is control's time, and `clock_offset` what the wall clock is ahead of
// it. `reuse_host`: it may serve another job afterwards.
// Errors: invalid, for an image or a file system that the config does not have any more.
Result<launch::Gang> gang_of(const Settings& settings, const domain::Job& job, domain::AttemptId id,
                             Instant now, Duration clock_offset = {}, bool reuse_host = false);

}  // namespace trainyard::control
