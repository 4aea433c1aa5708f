#include "schedule/plan.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/text.hpp"
#include "domain/instance_type.hpp"
#include "schedule/words.hpp"

namespace trainyard::schedule {
namespace {

using domain::Share;

// Fractions of vCPU are sums of quotients: this much is rounding, not room.
constexpr double kRoundingCpus = 1e-9;

Share plus(const Share& a, const Share& b) {
  return {a.cpus + b.cpus, a.memory_bytes + b.memory_bytes, a.gpus + b.gpus};
}
Share minus(const Share& a, const Share& b) {
  return {a.cpus - b.cpus, a.memory_bytes - b.memory_bytes, a.gpus - b.gpus};
}
bool within(const Share& part, const Share& whole) {
  return part.cpus <= whole.cpus + kRoundingCpus && part.memory_bytes <= whole.memory_bytes &&
         part.gpus <= whole.gpus;
}

// How far `needs` goes beyond `free`, as one number to compare machines by: a GPU is as much as 16 vCPU, 4
// GiB as one.
double lack(const Share& needs, const Share& free) {
  const Share over = minus(needs, free);
  return std::max(0.0, over.cpus - kRoundingCpus) + std::max(0.0, amount(over, Resource::memory)) / 4 +
         std::max(0.0, amount(over, Resource::gpus)) * 16;
}

// A gang laid over machines: where each host goes, or not at all.
struct Layout {
  std::vector<std::optional<size_t>> machine_of;  // by host
  std::vector<Share> needs;                       // by machine: of the whole gang
};

// Lays each host where the gang lacks least of what is free, and only where an empty machine could hold it;
// the first machine among equals. Larger hosts first, as they have less choice.
Layout lay(const std::vector<Share>& gang, const std::vector<Machine>& machines,
           const std::vector<Share>& free) {
  Layout layout{std::vector<std::optional<size_t>>(gang.size()), std::vector<Share>(machines.size())};
  std::vector<size_t> order(gang.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return lack(gang[a], {}) > lack(gang[b], {}); });
  for (const size_t host : order) {
    double least = 0;
    for (size_t m = 0; m < machines.size(); ++m) {
      const Share needs = plus(layout.needs[m], gang[host]);
      if (!within(needs, machines[m].total)) continue;
      const double more = lack(needs, free[m]) - lack(layout.needs[m], free[m]);
      if (layout.machine_of[host] && more >= least) continue;
      layout.machine_of[host] = m;
      least = more;
    }
    if (const auto m = layout.machine_of[host]) layout.needs[*m] = plus(layout.needs[*m], gang[host]);
  }
  return layout;
}

struct Scaled {
  std::vector<Share> gang;
  std::string note;
};

Scaled scale(const std::vector<Ask>& asks, const std::vector<Machine>& machines, const Policy& policy) {
  Scaled scaled;
  Share sum;
  for (const Ask& ask : asks) {
    scaled.gang.push_back(ask.share);
    sum = plus(sum, ask.share);
  }
  if (!policy.scale_gangs || machines.size() != 1 || within(sum, machines.front().total)) return scaled;
  const Machine& machine = machines.front();
  const auto hosts = int64_t(asks.size());
  const bool too_large =
      sum.cpus > machine.total.cpus + kRoundingCpus || sum.memory_bytes > machine.total.memory_bytes;
  for (Share& share : scaled.gang) {
    if (too_large) {
      share.cpus = machine.total.cpus / double(hosts);
      share.memory_bytes = machine.total.memory_bytes / hosts;
    }
    if (sum.gpus > machine.total.gpus) share.gpus = std::min(share.gpus, machine.total.gpus / hosts);
  }
  scaled.note = scaled_note(machine, asks, scaled.gang);
  return scaled;
}

class Planning {
 public:
  Planning(const Snapshot& snapshot, const Policy& policy)
      : machines_(snapshot.machines), policy_(policy), held_(snapshot.held) {
    for (const Machine& machine : machines_) free_.push_back(machine.total);
    for (const Held& held : held_)
      for (size_t m = 0; m < machines_.size(); ++m)
        if (machines_[m].name == held.machine) free_[m] = minus(free_[m], held.share);
  }

  void decide(const Waiting& waiting) {
    const Scaled scaled = scale(waiting.hosts, machines_, policy_);
    const Layout layout = lay(scaled.gang, machines_, free_);
    std::vector<Ask> unplaced;
    for (size_t host = 0; host < scaled.gang.size(); ++host)
      if (!layout.machine_of[host])
        unplaced.push_back({waiting.hosts[host].instance_type, scaled.gang[host]});
    if (!unplaced.empty()) {
      wait(waiting, too_large_sentence(scaled.gang.size() - unplaced.size(), unplaced, machines_));
    } else if (!first_blocked_.empty()) {
      wait(waiting, turn_sentence(first_blocked_, its_reason_));
    } else if (std::vector<Shortage> shortages = shortages_of(layout); !shortages.empty()) {
      first_blocked_ = waiting.name;
      its_reason_ = shortage_sentence(shortages, held_);
      wait(waiting, its_reason_);
    } else {
      start(waiting, scaled, layout);
    }
  }

  Plan take() { return std::move(plan_); }

 private:
  std::vector<Shortage> shortages_of(const Layout& layout) const {
    std::vector<Shortage> shortages;
    for (size_t m = 0; m < machines_.size(); ++m)
      if (const Share none; !within(layout.needs[m], none) && !within(layout.needs[m], free_[m]))
        shortages.push_back({&machines_[m], layout.needs[m], free_[m]});
    return shortages;
  }

  void wait(const Waiting& waiting, std::string reason) {
    plan_.waits.push_back({waiting.job, std::move(reason)});
  }

  void start(const Waiting& waiting, const Scaled& scaled, const Layout& layout) {
    Start start{waiting.job, {}, scaled.note};
    for (size_t host = 0; host < scaled.gang.size(); ++host) {
      const size_t m = *layout.machine_of[host];
      start.hosts.push_back({machines_[m].name, scaled.gang[host]});
      held_.push_back({waiting.name, machines_[m].name, scaled.gang[host]});
      free_[m] = minus(free_[m], scaled.gang[host]);
    }
    plan_.starts.push_back(std::move(start));
  }

  const std::vector<Machine>& machines_;
  const Policy& policy_;
  std::vector<Held> held_;
  std::vector<Share> free_;  // by machine
  std::string first_blocked_, its_reason_;
  Plan plan_;
};

}  // namespace

Plan plan(const Snapshot& snapshot, const Policy& policy, Instant) {
  Planning planning(snapshot, policy);
  for (const Waiting& waiting : snapshot.waiting) planning.decide(waiting);
  return planning.take();
}

Result<Ask> ask_for(std::string_view instance_type) {
  const auto type = domain::find_instance_type(instance_type);
  if (!type) return invalid("the size of instance type '" + shorten(instance_type, 60) + "' is not known");
  return Ask{std::string(instance_type),
             {double(type->cpus), int64_t(type->memory_gib * 1024 * 1024 * 1024), int64_t(type->gpus)}};
}

}  // namespace trainyard::schedule
