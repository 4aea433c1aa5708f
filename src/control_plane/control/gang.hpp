// Builds the launcher's request to start an attempt: an order for each of its hosts.
//
// Threads: pure. Private to this module.
#pragma once

#include "control/control.hpp"
#include "control/image_resolver.hpp"
#include "reconcile/state.hpp"

namespace trainyard::control {

// Requires: `id` is the job's current attempt. `now` is control's time, and `clock_offset` the wall
// clock minus control's time. `reuse_host`: the host may run another job afterwards. Errors:
// invalid, for an image or a file system that is no longer in the config.
Result<launch::Gang> gang_of(const Settings& settings, ImageResolver& images,
                             const domain::Job& job, domain::AttemptId id, Instant now,
                             Duration clock_offset = {}, bool reuse_host = false);

// Adds to the start of a job's attempt the note of its image, if the image has one, and whether its
// agents get certificates.
void complete_start(const Settings& settings, const domain::Job& job, ImageResolver& images,
                    reconcile::StartAttempt& start);

}  // namespace trainyard::control
