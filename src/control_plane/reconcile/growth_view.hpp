// Builds the input of plan_growth (schedule/growth.hpp): how many machines of each kind exist,
// their minimum, and since when machines have been idle. Only idle times are carried over from the
// last iteration; after a restart they begin at zero.
//
// The machines of a compute environment are shared (docs/decisions/23): its minvCpus and
// desiredvCpus apply to the first kind that its instanceTypes name.
//
// Threads: pure. Errors: none.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "batch/catalog.hpp"
#include "launch/launcher.hpp"
#include "schedule/growth.hpp"

namespace trainyard::reconcile {

// `catalog` is nullptr if there are no environments.
std::vector<schedule::MachineKind> kinds_of(const std::vector<launch::MachineKind>& kinds,
                                            const std::vector<launch::Machine>& machines,
                                            const batch::Catalog* catalog);

// Describes the machines for which a job waits: "waiting for machines: 2 of kind c5.4xlarge are
// being added"; with the reasons why others cannot be added.
std::string reason_of_growth(const std::vector<launch::MachineKind>& kinds);
// Returns these reasons: "; cannot be added: n2: ResumeTimeout reached"; "": none.
std::string failed_growth(const std::vector<launch::MachineKind>& kinds);

using IdleSince = std::map<std::string, Instant>;  // by machine

// Returns the machines that were added on demand and that neither the snapshot nor the plan uses.
IdleSince idle_since(const IdleSince& before, const std::vector<launch::Machine>& machines,
                     const schedule::Snapshot& snapshot, const schedule::Plan& plan, Instant now);

}  // namespace trainyard::reconcile
