// Decides how many machines a launcher should add or release. It adds machines for waiting jobs
// that would fit on them, and releases machines that have been idle for a while. It adds no machine
// that limits (maxvCpus) would not let jobs use, and keeps at least minvCpus.
//
// Threads: pure. Errors: none. Units: as plan.hpp.
#pragma once

#include <string>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// A kind of machine of which a launcher can add more.
struct MachineKind {
  std::string name;  // "c5.4xlarge"
  domain::Share total;
  double cpus_min = 0;      // kept even when idle
  double cpus_desired = 0;  // requested by an operator
  double cpus_max = 0;
  uint32_t machines = 0;  // that exist
  uint32_t coming = 0;    // that are requested and do not exist yet
};

// Returns true if an environment's instance types include the kind: "c5.4xlarge" is included in
// "c5.4xlarge", "c5" and "optimal". An empty list includes all kinds.
bool may_be_made_for(const std::vector<std::string>& instance_types, const std::string& kind);

struct IdleMachine {
  std::string name;
  std::string kind;
  Instant since;
};

struct Growth {
  struct More {
    std::string kind;
    uint32_t count = 0;
  };
  std::vector<More> grow;
  std::vector<std::string> shrink;  // names
};

struct GrowthPolicy {
  Duration idle_max = 60s;      // a machine that is idle for longer is released
  uint32_t coming_max = 1'000;  // machines of a kind that are requested at once
};

// Returns true if each host of the job would fit on a new machine of these kinds.
bool could_be_made(const WaitingJob& job, const std::vector<MachineKind>& kinds);

// Requires: `plan` is the plan of this snapshot. Requested machines count as existing.
Growth plan_growth(const Snapshot& snapshot, const Plan& plan,
                   const std::vector<MachineKind>& kinds, const std::vector<IdleMachine>& idle,
                   const GrowthPolicy& policy, Instant now);

}  // namespace trainyard::schedule
