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

// Adds the note of the job's image to its start, if the image has one.
void add_image_note(reconcile::StartAttempt& start, const domain::Job& job, ImageResolver& images);

}  // namespace trainyard::control
