// Applies changes of machines, queues and limits to a cluster, for replays: "one machine more",
// "this queue with fair share".
//
// Threads: pure.
// Errors:  invalid, naming the change, the value and what is known; all numbers are checked here,
//          since users send them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/enum_table.hpp"
#include "base/result.hpp"
#include "schedule/plan.hpp"

namespace trainyard::schedule {

enum class ReplayChangeKind {
  add_machines,
  remove_machine,
  set_policy,
  set_priority,
  set_weight,
  set_limit,
  set_submit_rate,
};
inline constexpr EnumTable<ReplayChangeKind> kReplayChangeKinds{
    "kind of change",
    {{ReplayChangeKind::add_machines, "AddMachines"},
     {ReplayChangeKind::remove_machine, "RemoveMachine"},
     {ReplayChangeKind::set_policy, "SetPolicy"},
     {ReplayChangeKind::set_priority, "SetPriority"},
     {ReplayChangeKind::set_weight, "SetWeight"},
     {ReplayChangeKind::set_limit, "SetLimit"},
     {ReplayChangeKind::set_submit_rate, "SetSubmitRate"}}};

struct ReplayChange {
  ReplayChangeKind kind = ReplayChangeKind::add_machines;
  std::string name = {};       // of the machine, queue or limit
  std::string share = {};      // set_weight
  std::string policy = {};     // set_policy: "fifo" or "fair"
  double value = 0;            // the priority, weight, limit or rate
  uint32_t count = 1;          // add_machines
  domain::Share machine = {};  // the size of each
};

// A named set of changes.
struct ReplayVariant {
  std::string name;
  std::vector<ReplayChange> changes = {};
};

inline constexpr size_t kReplayVariantsMax = 8;
inline constexpr size_t kReplayChangesMax = 32;  // of a variant
inline constexpr size_t kReplayNameBytesMax = 128;
inline constexpr uint32_t kReplayMachinesMax = 1'000;  // added by a variant
inline constexpr double kReplayRateMin = 0.01, kReplayRateMax = 100;
// AWS's limits for a weightFactor.
inline constexpr double kReplayWeightMin = 0.0001, kReplayWeightMax = 999.9999;
inline constexpr double kReplayPriorityMax = 1'000'000;
inline constexpr double kReplayLimitMax = 1e9;
inline constexpr domain::Share kReplayMachineMax = {100'000, int64_t{1} << 50, 10'000};

// A cluster with the changes of a variant.
struct ChangedCluster {
  Snapshot cluster;
  std::set<std::string> removed;  // machines
  std::set<size_t> made_fair;     // queues that got fair share: each user is a share
  double submit_rate = 1;         // 2: jobs arrive twice as fast
};

// Applies the changes of a variant. Queues and limits are named as users see them ("job queue
// nightly"), or by the last word ("nightly"). Jobs without a queue wait in "training jobs".
Result<ChangedCluster> with_changes(const Snapshot& cluster, const ReplayVariant& variant);

}  // namespace trainyard::schedule
