// Decides how many machines there should be: more when jobs wait that machines of a kind would hold, fewer when machines
// have been idle for a while. Nothing is asked for that limits (maxvCpus) would not let jobs use; what minvCpus asks for
// is kept.
//
// Threads: pure. Errors: none. Units: as plan.hpp.
#pragma once

#include <string>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

// A kind of machine of which a launcher can make more.
struct MachineKind {
  std::string name;  // "c5.4xlarge"
  domain::Share total;
  double cpus_min = 0;      // that are kept though idle
  double cpus_desired = 0;  // that are wished for now, by hand
  double cpus_max = 0;
  uint32_t machines = 0;  // that are there
  uint32_t coming = 0;    // asked for, not there yet
};

// Whether an environment's instance types name the kind: "c5.4xlarge" is named by "c5.4xlarge", "c5" and "optimal"; where
// there are none, any is.
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
  Duration idle_max = 60s;      // then a machine is given back
  uint32_t coming_max = 1'000;  // at once, of a kind
};

// Whether each host of the job would find room on a machine of these kinds, were one made for it.
bool could_be_made(const Waiting& job, const std::vector<MachineKind>& kinds);

// `plan`: of this snapshot. What is about to come is counted as there.
Growth plan_growth(const Snapshot& snapshot, const Plan& plan, const std::vector<MachineKind>& kinds,
                   const std::vector<IdleMachine>& idle, const GrowthPolicy& policy, Instant now);

}  // namespace trainyard::schedule
