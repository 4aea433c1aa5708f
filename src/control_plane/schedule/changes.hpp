// Finds the changes of a snapshot that may let a waiting job start, and makes them.
//
// Threads: pure. Private to this module.
#pragma once

#include <vector>

#include "schedule/what_if.hpp"

namespace trainyard::schedule {

// Returns the changes in the order in which they are tried: the first of each kind, then the second
// of each, so that a budget covers all kinds. `plan` is the plan of the snapshot.
std::vector<Change> changes_for(const Snapshot& snapshot, const Policy& policy, const Plan& plan,
                                const WhatIfQuestion& question);

}  // namespace trainyard::schedule
