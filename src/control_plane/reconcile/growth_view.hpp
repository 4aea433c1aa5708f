// What growth is decided from (schedule/growth.hpp): how many machines of each kind there are and should be at least, and
// which have been idle since when. Only how long a machine has been idle is taken from the turn before; after a restart
// that begins anew.
//
// A compute environment's machines are anybody's (docs/decisions/23): its minvCpus and desiredvCpus are kept of the first
// kind that its instanceTypes name.
//
// Threads: pure. Errors: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "domain/batch.hpp"
#include "launch/launcher.hpp"
#include "schedule/growth.hpp"

namespace trainyard::reconcile {

// `yard`: nullptr: there are no environments.
std::vector<schedule::MachineKind> kinds_of(const std::vector<launch::MachineKind>& kinds,
                                            const std::vector<launch::Machine>& machines,
                                            const domain::BatchCatalog* yard);

using IdleSince = std::map<std::string, Instant>;  // by machine

// Machines that were made on demand and that neither the snapshot nor the plan has anything on.
IdleSince idle_since(const IdleSince& before, const std::vector<launch::Machine>& machines,
                     const schedule::Snapshot& snapshot, const schedule::Plan& plan, Instant now);

}  // namespace trainyard::reconcile
