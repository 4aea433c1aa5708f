#include "schedule/growth.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "schedule/free_capacity.hpp"
#include "schedule/kinds.hpp"
#include "schedule/limits.hpp"

namespace trainyard::schedule {
namespace {

// The free capacity of a machine that does not exist. It holds no host, not even one that requests
// nothing.
constexpr Share kNothing{-1, -1, -1};
// AWS's names for "any type that fits".
constexpr std::string_view kAnyTypes[] = {"optimal", "default_x86_64", "default_arm64"};

// GrowthPlanner holds the cluster and the machines that could be added: each kind has slots, which
// are opened one by one.
class GrowthPlanner {
 public:
  GrowthPlanner(const Snapshot& snapshot, const Plan& plan, const std::vector<MachineKind>& kinds,
                const GrowthPolicy& policy, Instant now)
      : snapshot_(snapshot),
        kinds_(kinds),
        allocations_(snapshot, now),
        limits_(snapshot, allocations_),
        more_(kinds.size()),
        used_(snapshot.machines.size()) {
    std::vector<Share> free;
    for (const Machine& machine : snapshot.machines) free.push_back(machine.total);
    for (const Allocation& allocation : allocations_.all())
      for (const HeldHost& host : allocations_.hosts(allocation))
        take(free, host.machine, host.share);
    carry_out(plan, free);
    for (const MachineKind& kind : kinds) {
      free.insert(free.end(), kind.coming, kind.total);
      Slots& slots = slots_.emplace_back();
      slots.next = uint32_t(free.size());
      const double capacity =
          kind.total.cpus > 0 ? (kind.cpus_max + kRoundingCpus) / kind.total.cpus : 0;
      const auto may_come = policy.coming_max > kind.coming ? policy.coming_max - kind.coming : 0;
      slots.end = slots.next + uint32_t(std::clamp(capacity, 0.0, double(may_come)));
      free.resize(slots.end, kNothing);
    }
    topology_.emplace(std::vector<Machine>(free.size()));
    capacity_.emplace(*topology_, std::move(free));
  }

  // Opens slots for the waiting jobs, in their order.
  void grow_for(const Plan& plan) {
    const Kinds alike = kinds_of(snapshot_.waiting, snapshot_.queues);
    std::vector<bool> hopeless(alike.kinds.size());
    for (const Wait& wait : plan.waits) {
      const auto job = std::ranges::lower_bound(snapshot_.waiting, wait.job, {}, &WaitingJob::job);
      const uint32_t kind = alike.kind_of[size_t(job - snapshot_.waiting.begin())];
      if (!hopeless[kind]) hopeless[kind] = !grow_for(*job);
    }
  }

  // Opens slots of each kind that has fewer machines than desired.
  void grow_to_desired() {
    for (size_t k = 0; k < kinds_.size(); ++k)
      while (cpus_of(k) + kRoundingCpus < desired(k) && open(k)) {
      }
  }

  Growth result(const std::vector<IdleMachine>& idle, const GrowthPolicy& policy,
                Instant now) const {
    Growth growth;
    for (size_t k = 0; k < kinds_.size(); ++k)
      if (more_[k] > 0) growth.grow.push_back({kinds_[k].name, more_[k]});
    std::unordered_map<std::string_view, uint32_t> by_name;
    for (uint32_t m = 0; m < snapshot_.machines.size(); ++m)
      by_name.emplace(snapshot_.machines[m].name, m);
    std::vector<const IdleMachine*> longest_first;
    for (const IdleMachine& each : idle)
      if (now - each.since >= policy.idle_max) longest_first.push_back(&each);
    std::ranges::stable_sort(longest_first, {}, &IdleMachine::since);
    std::vector<uint32_t> fewer(kinds_.size());
    for (const IdleMachine* each : longest_first) {
      const auto kind = std::ranges::find(kinds_, each->kind, &MachineKind::name);
      const auto machine = by_name.find(each->name);
      if (kind == kinds_.end() || (machine != by_name.end() && used_[machine->second])) continue;
      const auto k = size_t(kind - kinds_.begin());
      if (cpus_of(k) - (fewer[k] + 1) * kind->total.cpus + kRoundingCpus < desired(k)) continue;
      ++fewer[k];
      growth.shrink.push_back(each->name);
    }
    return growth;
  }

 private:
  struct Slots {
    uint32_t next = 0, end = 0;
  };

  static void take(std::vector<Share>& free, uint32_t machine, const Share& share) {
    free[machine] = minus(free[machine], share);
  }

  void carry_out(const Plan& plan, std::vector<Share>& free) {
    std::unordered_map<std::string_view, uint32_t> by_name;
    for (uint32_t m = 0; m < snapshot_.machines.size(); ++m)
      by_name.emplace(snapshot_.machines[m].name, m);
    for (const Start& start : plan.starts) {
      double cpus = 0;
      for (const Placement& host : start.hosts) {
        cpus += host.share.cpus;
        const auto machine = by_name.find(host.machine);
        if (machine == by_name.end()) continue;
        used_[machine->second] = true;
        if (start.pool == 0)
          take(free, machine->second, host.share);  // the hosts of a pool are counted already
      }
      const auto job = std::ranges::lower_bound(snapshot_.waiting, start.job, {}, &WaitingJob::job);
      const auto choice = std::ranges::find(job->choices, start.environment, &Choice::environment);
      if (choice != job->choices.end()) limits_.take(*choice, cpus, std::nullopt);
    }
  }

  double cpus_of(size_t k) const {
    return (kinds_[k].machines + kinds_[k].coming + more_[k]) * kinds_[k].total.cpus;
  }
  double desired(size_t k) const {
    return std::max(kinds_[k].cpus_min, std::min(kinds_[k].cpus_desired, kinds_[k].cpus_max));
  }

  bool may_open(size_t k) const {
    return slots_[k].next < slots_[k].end &&
           cpus_of(k) + kinds_[k].total.cpus <= kinds_[k].cpus_max + kRoundingCpus;
  }
  bool open(size_t k) {
    if (!may_open(k)) return false;
    capacity_->set(slots_[k].next++, kinds_[k].total);
    ++more_[k];
    return true;
  }

  // Returns the smallest kind of these types that may grow and whose machines hold such a host.
  std::optional<size_t> kind_for(const Share& share,
                                 const std::vector<std::string>& instance_types) const {
    std::optional<size_t> best;
    for (size_t k = 0; k < kinds_.size(); ++k) {
      const MachineKind& kind = kinds_[k];
      if (!may_be_made_for(instance_types, kind.name) || !within(share, kind.total) || !may_open(k))
        continue;
      if (!best || size_of(kind.total) < size_of(kinds_[*best].total)) best = k;
    }
    return best;
  }

  // Opens slots for the job. Returns false if no added machines would let it start.
  bool grow_for(const WaitingJob& job) {
    const Gang gang = gang_of(job.requests, snapshot_.machines, {});
    if (job.choices.empty()) return grow_for(gang, {});
    for (const Choice& choice : job.choices) {
      if (!limits_.obstacles(choice, job.queue, gang.cpus, std::nullopt).empty()) continue;
      if (!grow_for(gang, choice.instance_types)) continue;
      limits_.take(choice, gang.cpus, std::nullopt);
      return true;
    }
    return false;
  }

  // Places the gang host by host, and opens slots where needed. If not all hosts can be placed,
  // undoes everything and returns false.
  bool grow_for(const Gang& gang, const std::vector<std::string>& instance_types) {
    if (const auto layout = capacity_->place(gang)) {
      for (uint32_t host = 0; host < gang.hosts; ++host) {
        put((*layout)[host], gang.share_of(host));
        use((*layout)[host]);
      }
      return true;
    }
    std::vector<std::pair<uint32_t, Share>> undo;
    const auto more_before = more_;
    const auto slots_before = slots_;
    for (const Group& group : gang.groups) {
      const Gang one{{{group.share, 1}}, 1, group.share.cpus, ""};
      for (uint32_t i = 0; i < group.count; ++i) {
        auto layout = capacity_->place(one);
        if (!layout) {
          const auto kind = kind_for(group.share, instance_types);
          if (!kind) {
            for (auto each = undo.rbegin(); each != undo.rend(); ++each)
              capacity_->set(each->first, each->second);
            more_ = more_before;
            slots_ = slots_before;
            return false;
          }
          undo.emplace_back(slots_[*kind].next, kNothing);
          open(*kind);
          layout = capacity_->place(one);
        }
        undo.emplace_back(layout->front(), capacity_->free(layout->front()));
        put(layout->front(), group.share);
      }
    }
    // Not earlier: a gang that is undone must not keep an idle machine.
    for (const auto& [machine, before] : undo) use(machine);
    return true;
  }

  void put(uint32_t machine, const Share& share) {
    capacity_->set(machine, minus(capacity_->free(machine), share));
  }
  void use(uint32_t machine) {
    if (machine < used_.size()) used_[machine] = true;
  }

  const Snapshot& snapshot_;
  const std::vector<MachineKind>& kinds_;
  Allocations allocations_;
  Limits limits_;
  std::vector<uint32_t> more_;  // by kind
  std::vector<Slots> slots_;    // by kind: indices of machines that do not exist
  std::vector<bool> used_;      // existing machines that starting or waiting jobs use
  std::optional<Topology> topology_;
  std::optional<FreeCapacity> capacity_;
};

}  // namespace

bool may_be_made_for(const std::vector<std::string>& instance_types, const std::string& kind) {
  return instance_types.empty() ||
         std::ranges::any_of(instance_types, [&](const std::string& type) {
           return type == kind || kind.starts_with(type + ".") ||
                  std::ranges::find(kAnyTypes, type) != std::end(kAnyTypes);
         });
}

bool could_be_made(const WaitingJob& job, const std::vector<MachineKind>& kinds) {
  const auto holds_all = [&](const std::vector<std::string>& instance_types) {
    return std::ranges::all_of(job.requests, [&](const HostRequest& request) {
      return std::ranges::any_of(kinds, [&](const MachineKind& kind) {
        return may_be_made_for(instance_types, kind.name) &&
               kind.total.cpus <= kind.cpus_max + kRoundingCpus &&
               within(request.share, kind.total);
      });
    });
  };
  if (job.choices.empty()) return holds_all({});
  return std::ranges::any_of(
      job.choices, [&](const Choice& choice) { return holds_all(choice.instance_types); });
}

Growth plan_growth(const Snapshot& snapshot, const Plan& plan,
                   const std::vector<MachineKind>& kinds, const std::vector<IdleMachine>& idle,
                   const GrowthPolicy& policy, Instant now) {
  GrowthPlanner planner(snapshot, plan, kinds, policy, now);
  planner.grow_for(plan);
  planner.grow_to_desired();
  return planner.result(idle, policy, now);
}

}  // namespace trainyard::schedule
