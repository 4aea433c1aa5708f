#include "schedule/plan.hpp"

#include <algorithm>
#include <functional>
#include <map>
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

// Larger hosts first, as they have less choice.
std::vector<size_t> larger_first(const std::vector<Share>& gang) {
  std::vector<size_t> order(gang.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return lack(gang[a], {}) > lack(gang[b], {}); });
  return order;
}

// Lays each host where the gang lacks least of what is free, and only where an empty machine could hold it;
// the first machine among equals.
Layout lay(const std::vector<Share>& gang, const std::vector<Machine>& machines,
           const std::vector<Share>& free) {
  Layout layout{std::vector<std::optional<size_t>>(gang.size()), std::vector<Share>(machines.size())};
  for (const size_t host : larger_first(gang)) {
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

bool same(const Share& a, const Share& b) {
  return a.cpus == b.cpus && a.memory_bytes == b.memory_bytes && a.gpus == b.gpus;
}

// Looks for a layout of the whole gang within `room` of each machine, when laying host by host has found none: depth
// first over hosts, each on each machine. Two things keep it small, and lose no solution: hosts that ask for the same
// stand on machines in ascending order, and of machines with equal room left only the first is tried, since swapping
// the two in all that follows gives the other's solutions.
class Search {
 public:
  Search(const std::vector<Share>& gang, std::vector<Share> room)
      : gang_(gang), order_(larger_first(gang)), room_(std::move(room)), at_(gang.size()) {}

  std::optional<Layout> run() {
    Share asked, there;
    for (const Share& share : gang_) asked = plus(asked, share);
    for (const Share& share : room_)
      there = plus(there, {std::max(0.0, share.cpus), std::max<int64_t>(0, share.memory_bytes),
                           std::max<int64_t>(0, share.gpus)});
    if (!within(asked, there) || !place(0)) return std::nullopt;
    Layout layout{std::vector<std::optional<size_t>>(gang_.size()), std::vector<Share>(room_.size())};
    for (size_t host = 0; host < gang_.size(); ++host) {
      layout.machine_of[host] = at_[host];
      layout.needs[at_[host]] = plus(layout.needs[at_[host]], gang_[host]);
    }
    return layout;
  }

 private:
  // The hosts from the depth-th of the order on.
  bool place(size_t depth) {
    if (depth == order_.size()) return true;
    const size_t host = order_[depth];
    const bool repeats = depth > 0 && same(gang_[order_[depth - 1]], gang_[host]);
    const size_t first = repeats ? at_[order_[depth - 1]] : 0;
    std::vector<size_t> tried;
    for (size_t m = first; m < room_.size(); ++m) {
      if (++steps_ > kLayoutStepsMax) return false;
      if (!within(gang_[host], room_[m]) ||
          std::ranges::any_of(tried, [&](size_t other) { return same(room_[other], room_[m]); }))
        continue;
      tried.push_back(m);
      const Share before = room_[m];
      room_[m] = minus(before, gang_[host]);
      at_[host] = m;
      if (place(depth + 1)) return true;
      room_[m] = before;
    }
    return false;
  }

  const std::vector<Share>& gang_;
  const std::vector<size_t> order_;
  std::vector<Share> room_;  // left on each machine
  std::vector<size_t> at_;   // by host, of those that are placed
  size_t steps_ = 0;
};

// What a gang asks for, as a key: gangs with equal ones wait for the same reason.
std::string asks_of(const Waiting& waiting) {
  std::string text;
  for (const std::string& environment : waiting.environments) text += environment + ";";
  size_t count = 0;
  for (size_t host = 0; host < waiting.hosts.size(); ++host) {
    ++count;
    const Ask& ask = waiting.hosts[host];
    if (host + 1 < waiting.hosts.size() && waiting.hosts[host + 1].instance_type == ask.instance_type &&
        same(waiting.hosts[host + 1].share, ask.share))
      continue;
    text += ask.instance_type + " " + std::to_string(ask.share.cpus) + " " +
            std::to_string(ask.share.memory_bytes) + " " + std::to_string(ask.share.gpus) + " x " +
            std::to_string(std::exchange(count, 0)) + ";";
  }
  return text;
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
      : machines_(snapshot.machines),
        policy_(policy),
        environments_(snapshot.environments),
        held_(snapshot.held),
        pools_(snapshot.pools) {
    for (const Machine& machine : machines_) free_.push_back(machine.total);
    for (const Pool& pool : pools_)
      for (const Placement& host : pool.hosts) held_.push_back({pool.holder, host.machine, host.share});
    for (const Held& held : held_)
      for (size_t m = 0; m < machines_.size(); ++m)
        if (machines_[m].name == held.machine) free_[m] = minus(free_[m], held.share);
  }

  void decide(const Waiting& waiting) {
    if (take_pool(waiting)) return;
    // A thousand waiting jobs ask for a handful of things.
    const std::string asks = asks_of(waiting);
    if (const auto known = reasons_.find(asks); known != reasons_.end()) return wait(waiting, known->second);

    const Scaled scaled = scale(waiting.hosts, machines_, policy_);
    const auto environment = choose_environment(waiting, scaled);
    if (!environment) return;  // it waits
    Layout layout = lay(scaled.gang, machines_, free_);
    std::vector<Ask> unplaced = unplaced_of(waiting, scaled, layout);
    if (!unplaced.empty()) {
      std::vector<Share> empty;
      for (const Machine& machine : machines_) empty.push_back(machine.total);
      if (auto found = Search(scaled.gang, std::move(empty)).run()) {
        layout = *std::move(found);
        unplaced.clear();
      }
    }
    if (!unplaced.empty()) {
      wait(waiting,
           reasons_[asks] = too_large_sentence(scaled.gang.size() - unplaced.size(), unplaced, machines_));
      return;
    }
    if (!first_blocked_.empty())
      return wait(waiting, reasons_[asks] = turn_sentence(first_blocked_, its_reason_));
    const std::vector<Shortage> shortages = shortages_of(layout);
    if (shortages.empty()) return start(waiting, scaled, layout, *environment);
    if (const auto found = Search(scaled.gang, free_).run())
      return start(waiting, scaled, *found, *environment);
    first_blocked_ = waiting.name;
    its_reason_ = shortage_sentence(shortages, held_);
    wait(waiting, its_reason_);
  }

  Plan take() { return std::move(plan_); }

 private:
  bool take_pool(const Waiting& waiting) {
    for (const domain::JobNumber number : waiting.pools) {
      const auto pool = std::ranges::find(pools_, number, &Pool::of);
      if (pool == pools_.end() || pool->hosts.size() != waiting.hosts.size()) continue;
      plan_.starts.push_back({waiting.job, std::move(pool->hosts), "", number, ""});
      for (Held& held : held_)
        if (held.holder == pool->holder) held.holder = waiting.name;
      pools_.erase(pool);
      return true;
    }
    return false;
  }

  // The first environment with room for the gang; "" when it needs none. Nothing: it waits, and has been told why.
  std::optional<std::string> choose_environment(const Waiting& waiting, const Scaled& scaled) {
    if (waiting.environments.empty()) return "";
    double cpus = 0;
    for (const Share& share : scaled.gang) cpus += share.cpus;
    std::string reason;
    std::vector<std::string> full;
    for (const std::string& name : waiting.environments) {
      const auto environment = std::ranges::find(environments_, name, &Environment::name);
      if (environment == environments_.end()) continue;
      const auto before = blocked_environments_.find(name);
      if (before == blocked_environments_.end() && environment->cpus_max == 0) return name;
      double used = 0;
      for (const Held& held : held_)
        if (held.environment == name) used += held.share.cpus;
      if (before == blocked_environments_.end() && used + cpus <= environment->cpus_max + kRoundingCpus)
        return name;
      const bool never = environment->cpus_max != 0 && cpus > environment->cpus_max + kRoundingCpus;
      if (!reason.empty()) reason += "; ";
      reason += !never && before != blocked_environments_.end()
                    ? turn_sentence(before->second.first, before->second.second)
                    : limit_sentence(*environment, cpus, used);
      if (!never) full.push_back(name);
    }
    if (reason.empty())
      reason = "waits for a compute environment: none of its job queue is there and enabled";
    for (const std::string& name : full) blocked_environments_.try_emplace(name, waiting.name, reason);
    wait(waiting, std::move(reason));
    return std::nullopt;
  }

  static std::vector<Ask> unplaced_of(const Waiting& waiting, const Scaled& scaled, const Layout& layout) {
    std::vector<Ask> unplaced;
    for (size_t host = 0; host < scaled.gang.size(); ++host)
      if (!layout.machine_of[host])
        unplaced.push_back({waiting.hosts[host].instance_type, scaled.gang[host]});
    return unplaced;
  }

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

  void start(const Waiting& waiting, const Scaled& scaled, const Layout& layout,
             const std::string& environment) {
    Start start{waiting.job, {}, scaled.note, 0, environment};
    for (size_t host = 0; host < scaled.gang.size(); ++host) {
      const size_t m = *layout.machine_of[host];
      start.hosts.push_back({machines_[m].name, scaled.gang[host]});
      held_.push_back({waiting.name, machines_[m].name, scaled.gang[host], environment});
      free_[m] = minus(free_[m], scaled.gang[host]);
    }
    plan_.starts.push_back(std::move(start));
  }

  const std::vector<Machine>& machines_;
  const Policy& policy_;
  const std::vector<Environment>& environments_;
  std::vector<Held> held_;
  std::vector<Pool> pools_;  // not taken over yet
  std::vector<Share> free_;  // by machine
  std::map<std::string, std::string>
      reasons_;  // by what is asked for, once nothing later in the plan can change them
  std::string first_blocked_, its_reason_;
  // In which somebody waits for room: who, and why.
  std::map<std::string, std::pair<std::string, std::string>> blocked_environments_;
  Plan plan_;
};

}  // namespace

Plan plan(const Snapshot& snapshot, const Policy& policy, Instant) {
  Planning planning(snapshot, policy);
  std::vector<const Waiting*> in_turn;
  for (const Waiting& waiting : snapshot.waiting) in_turn.push_back(&waiting);
  std::ranges::stable_sort(in_turn, std::greater(), &Waiting::priority);
  for (const Waiting* waiting : in_turn) planning.decide(*waiting);
  return planning.take();
}

Result<Ask> ask_of(const domain::InstanceGroup& group) {
  if (group.share) return Ask{group.instance_type, *group.share};
  return ask_for(group.instance_type);
}

Result<Ask> ask_for(std::string_view instance_type) {
  const auto type = domain::find_instance_type(instance_type);
  if (!type) return invalid("the size of instance type '" + shorten(instance_type, 60) + "' is not known");
  return Ask{std::string(instance_type),
             {double(type->cpus), int64_t(type->memory_gib * 1024 * 1024 * 1024), int64_t(type->gpus)}};
}

}  // namespace trainyard::schedule
