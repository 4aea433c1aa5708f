#include "schedule/replay/replay_changes.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace trainyard::schedule {
namespace {

constexpr Duration kReplayDecay = 600s;  // of a queue that gets fair share: AWS's default
constexpr size_t kNamesListedMax = 10;   // in an error

std::string number_text(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

Result<void> check_range(const char* what, double value, double least, double most) {
  if (std::isfinite(value) && value >= least && value <= most) return {};
  return invalid(std::string("invalid ") + what + " " + number_text(value) + ": use " +
                 number_text(least) + " to " + number_text(most));
}

bool is_named(const std::string& full, const std::string& name) {
  return full == name || (!name.empty() && full.ends_with(" " + name));
}

template <class All>
Error unknown_name(const char* what, const std::string& name, const All& all) {
  std::string known;
  size_t listed = 0;
  for (const auto& each : all) {
    if (listed++ == kNamesListedMax) {
      known += ", ..";
      break;
    }
    known += (known.empty() ? "" : ", ") + each.name;
  }
  return invalid(std::string("unknown ") + what + " '" + name + "' in this period" +
                 (known.empty() ? "" : ": known are " + known));
}

class Changing {
 public:
  explicit Changing(const Snapshot& cluster) { out_.cluster = cluster; }

  Result<void> apply(const ReplayChange& change) {
    for (const std::string* text : {&change.name, &change.share, &change.policy})
      if (text->size() > kReplayNameBytesMax)
        return invalid("a name of a change is longer than " + std::to_string(kReplayNameBytesMax) +
                       " bytes");
    switch (change.kind) {
      case ReplayChangeKind::add_machines:
        return add_machines(change);
      case ReplayChangeKind::remove_machine:
        return remove_machine(change);
      case ReplayChangeKind::set_policy:
        return set_policy(change);
      case ReplayChangeKind::set_priority:
        return set_priority(change);
      case ReplayChangeKind::set_weight:
        return set_weight(change);
      case ReplayChangeKind::set_limit:
        return set_limit(change);
      case ReplayChangeKind::set_submit_rate:
        TRY(check_range("submit rate", change.value, kReplayRateMin, kReplayRateMax));
        out_.submit_rate = change.value;
        return {};
    }
    return invalid("unknown change " + std::to_string(int(change.kind)));
  }

  ChangedCluster take() { return std::move(out_); }

 private:
  Result<void> add_machines(const ReplayChange& change) {
    if (change.count == 0 || change.count > kReplayMachinesMax - added_)
      return invalid("invalid number of machines: add 1 to " + std::to_string(kReplayMachinesMax) +
                     " in a variant");
    TRY(check_range("vCPU of a machine", change.machine.cpus, 0, kReplayMachineMax.cpus));
    TRY(check_range("memory of a machine", double(change.machine.memory_bytes), 0,
                    double(kReplayMachineMax.memory_bytes)));
    TRY(check_range("GPUs of a machine", double(change.machine.gpus), 0,
                    double(kReplayMachineMax.gpus)));
    if (change.machine.cpus <= 0) return invalid("invalid vCPU of a machine 0: use more");
    const std::string name = change.name.empty() ? "machine" : change.name;
    for (uint32_t i = 0; i < change.count; ++i)
      out_.cluster.machines.push_back(
          {.name = free_name(name, change.count > 1), .total = change.machine});
    added_ += change.count;
    return {};
  }

  std::string free_name(const std::string& name, bool numbered) {
    const auto is_taken = [&](const std::string& text) {
      return std::ranges::find(out_.cluster.machines, text, &Machine::name) !=
             out_.cluster.machines.end();
    };
    if (!numbered && !is_taken(name)) return name;
    for (;;)
      if (const std::string next = name + "-" + std::to_string(++names_[name]); !is_taken(next))
        return next;
  }

  Result<void> remove_machine(const ReplayChange& change) {
    const auto found = std::ranges::find(out_.cluster.machines, change.name, &Machine::name);
    if (found == out_.cluster.machines.end())
      return unknown_name("machine", change.name, out_.cluster.machines);
    out_.cluster.machines.erase(found);
    out_.removed.insert(change.name);
    return {};
  }

  // Queues of that name, in any region.
  Result<std::vector<size_t>> queues(const std::string& name) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < out_.cluster.queues.size(); ++i)
      if (is_named(out_.cluster.queues[i].name, name)) found.push_back(i);
    if (found.empty()) return unknown_name("queue", name, out_.cluster.queues);
    return found;
  }

  Result<void> set_policy(const ReplayChange& change) {
    for (const size_t index : TRY(queues(change.name))) {
      Queue& queue = out_.cluster.queues[index];
      if (change.policy == "fifo") {
        queue.fair.reset();
        queue.quota_shares.clear();
      } else if (change.policy == "fair") {
        queue.quota_shares.clear();
        if (queue.fair) continue;
        queue.fair.emplace();
        queue.fair->decay = kReplayDecay;
        out_.made_fair.insert(index);
      } else if (change.policy != "quota") {
        return invalid("unknown policy '" + change.policy + "': use fifo, fair or quota");
      } else if (queue.quota_shares.empty()) {
        return invalid(queue.name + " has no quota shares: create them, or use fifo or fair");
      }
    }
    return {};
  }

  Result<void> set_priority(const ReplayChange& change) {
    TRY(check_range("priority", change.value, 0, kReplayPriorityMax));
    if (change.value != std::floor(change.value))
      return invalid("invalid priority " + number_text(change.value) + ": use a whole number");
    for (const size_t index : TRY(queues(change.name)))
      out_.cluster.queues[index].priority = int64_t(change.value);
    return {};
  }

  Result<void> set_weight(const ReplayChange& change) {
    TRY(check_range("weight", change.value, kReplayWeightMin, kReplayWeightMax));
    for (const size_t index : TRY(queues(change.name))) {
      Queue& queue = out_.cluster.queues[index];
      if (!queue.fair)
        return invalid(queue.name + " has no fair share: set its policy to fair first");
      auto& shares = queue.fair->shares;
      const auto share = std::ranges::find(shares, change.share, &FairShare::Share::name);
      if (share != shares.end())
        share->weight = change.value;
      else
        shares.push_back({change.share, change.value, 0});
    }
    return {};
  }

  Result<void> set_limit(const ReplayChange& change) {
    TRY(check_range("limit", change.value, 0, kReplayLimitMax));
    Limit* found = nullptr;
    for (Limit& limit : out_.cluster.limits) {
      if (!is_named(limit.name, change.name)) continue;
      if (limit.name == change.name) {
        found = &limit;
        break;
      }
      if (found)
        return invalid("ambiguous limit '" + change.name + "': it may be " + found->name + " or " +
                       limit.name);
      found = &limit;
    }
    if (!found) return unknown_name("limit", change.name, out_.cluster.limits);
    found->total = change.value;
    return {};
  }

  ChangedCluster out_;
  uint32_t added_ = 0;
  std::map<std::string, uint32_t> names_;
};

}  // namespace

Result<ChangedCluster> with_changes(const Snapshot& cluster, const ReplayVariant& variant) {
  if (variant.name.empty() || variant.name.size() > kReplayNameBytesMax)
    return invalid("invalid name of a variant: use 1 to " + std::to_string(kReplayNameBytesMax) +
                   " bytes");
  if (variant.changes.size() > kReplayChangesMax)
    return invalid("variant " + variant.name + " has more than " +
                   std::to_string(kReplayChangesMax) + " changes");
  Changing changing(cluster);
  for (const ReplayChange& change : variant.changes)
    TRY(changing.apply(change).in("variant " + variant.name));
  return changing.take();
}

}  // namespace trainyard::schedule
