#include "schedule/pending_reasons.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/enum_table.hpp"
#include "base/plural.hpp"

namespace trainyard::schedule {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// Formats with as few digits as needed: "8", "0.5", "23.5".
std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string shown(text);
  while (shown.find('.') != std::string::npos && (shown.back() == '0' || shown.back() == '.')) {
    const bool point = shown.back() == '.';
    shown.pop_back();
    if (point) break;
  }
  return shown;
}

double rounded_up(double value) { return std::ceil(value * 1000 - 1e-6) / 1000; }
double rounded_down(double value) { return std::floor(value * 1000 + 1e-6) / 1000; }

constexpr EnumTable<Resource> kUnits{
    "unit",
    {{Resource::cpus, "vCPU"}, {Resource::memory, "GiB of memory"}, {Resource::gpus, "GPU"}}};

std::string holders(const Shortage& shortage, Resource resource) {
  std::vector<std::pair<std::string_view, double>> sums;
  for (const auto& [holder, share] : shortage.held) {
    if (amount(share, resource) <= 0) continue;
    const auto found = std::ranges::find(sums, holder, &std::pair<std::string_view, double>::first);
    if (found == sums.end())
      sums.emplace_back(holder, amount(share, resource));
    else
      found->second += amount(share, resource);
  }
  if (sums.empty()) return "";
  std::string text = ": held by ";
  for (size_t i = 0; i < std::min(sums.size(), kHoldersMax); ++i)
    text += (i ? ", " : "") + std::string(sums[i].first) + " (" + number(sums[i].second, 3) + ")";
  if (sums.size() > kHoldersMax)
    text += " and " + std::to_string(sums.size() - kHoldersMax) + " more";
  return text;
}

// "8 vCPU, 32 GiB of memory and 1 GPU"; zeros are left out.
std::string all_of(const Share& share) {
  std::vector<std::string> parts;
  for (const Resource resource : kResources)
    if (amount(share, resource) > 0)
      parts.push_back(number(rounded_up(amount(share, resource)), 3) + " " +
                      std::string(kUnits.text(resource)));
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

// Merges adjacent requests with the same text, and adds up their counts.
std::vector<std::pair<std::string, uint32_t>> counted(
    const std::vector<HostRequest>& requests,
    const std::function<std::string(const HostRequest&)>& show) {
  std::vector<std::pair<std::string, uint32_t>> counts;
  for (const HostRequest& request : requests) {
    std::string shown = show(request);
    if (counts.empty() || counts.back().first != shown)
      counts.emplace_back(std::move(shown), request.count);
    else
      counts.back().second += request.count;
  }
  return counts;
}

std::string machines_to_add(const std::vector<HostRequest>& unplaced) {
  std::string text;
  for (const auto& [size, count] :
       counted(unplaced, [](const HostRequest& request) { return all_of(request.share); }))
    text += (text.empty() ? "add " : " and ") + std::to_string(count) +
            (count == 1 ? " machine" : " machines") + " with at least " + size +
            (count == 1 ? "" : " each");
  return text;
}

// "ml.m5.4xlarge x 2 and ml.c5.xlarge"
std::string types(const std::vector<HostRequest>& requests) {
  std::string text;
  for (const auto& [type, count] :
       counted(requests, [](const HostRequest& request) { return request.instance_type; }))
    text +=
        (text.empty() ? "" : " and ") + type + (count == 1 ? "" : " x " + std::to_string(count));
  return text;
}

// "2026-11-22 10:35:00 UTC at the latest", rounded up to the second that users read.
std::string latest(Instant at) {
  std::string text = to_iso8601(at + 999ms, false);
  text[text.find('T')] = ' ';
  text.pop_back();
  return text + " UTC at the latest";
}

}  // namespace

double amount(const Share& share, Resource resource) {
  switch (resource) {
    case Resource::cpus:
      return share.cpus;
    case Resource::memory:
      return double(share.memory_bytes) / kGib;
    case Resource::gpus:
      return double(share.gpus);
  }
  return 0;
}

std::string shortage_reason(const std::vector<Shortage>& shortages) {
  std::string text;
  for (size_t i = 0; i < std::min(shortages.size(), kMachinesNamedMax); ++i)
    for (const Resource resource : kResources) {
      const Shortage& shortage = shortages[i];
      const double needs = amount(shortage.needs, resource), free = amount(shortage.free, resource);
      if (needs - free <= (resource == Resource::cpus ? kRoundingCpus : 0)) continue;
      // A single missing byte shows as the smallest amount that can be shown.
      const double more = std::max(rounded_up(needs - free), 0.001);
      text += (text.empty() ? "waits for " : "; and for ") + number(more, 3) + " more " +
              std::string(kUnits.text(resource)) + " on machine " + shortage.machine->name +
              " (needs " + number(rounded_up(needs), 3) + ", " +
              number(rounded_down(std::max(0.0, free)), 3) + " free)" + holders(shortage, resource);
    }
  if (shortages.size() > kMachinesNamedMax)
    text += "; and for capacity on " +
            trainyard::counted(shortages.size() - kMachinesNamedMax, "more machine");
  return text;
}

std::string capacity_reason(const Gang& gang, int64_t capacity) {
  const std::string hosts = trainyard::counted(gang.hosts, "host");
  if (!gang.even() || capacity >= gang.hosts)
    return "waits for capacity for its " + hosts + " together";
  return "waits for capacity for " + std::to_string(gang.hosts - capacity) + " more of its " +
         hosts + " (each needs " + all_of(gang.groups.front().share) + ")";
}

std::string too_large_reason(size_t placed, const std::vector<HostRequest>& unplaced,
                             const std::vector<Machine>& machines) {
  const std::string add = machines_to_add(unplaced);
  if (machines.empty()) return "no machine to run on: " + add;
  for (const Resource resource : kResources) {
    double largest = 0;
    for (const Machine& machine : machines)
      largest = std::max(largest, amount(machine.total, resource));
    const double needs = amount(unplaced.front().share, resource);
    if (needs > largest + 1e-9)
      return "needs " + number(rounded_up(needs), 3) + " " + std::string(kUnits.text(resource)) +
             " on one machine, the largest has " + number(rounded_down(largest), 3) + ": " + add;
  }
  if (placed == 0)
    return "needs " + all_of(unplaced.front().share) +
           " on one machine, and no machine has all of it: " + add;
  size_t hosts = placed;
  for (const HostRequest& request : unplaced) hosts += request.count;
  return "needs capacity for " + std::to_string(hosts) +
         " hosts, and all machines together have capacity for " + std::to_string(placed) +
         " of them: " + add;
}

std::string limit_reason(const Limits& limits, const Limits::Obstacle& obstacle) {
  using What = Limits::Obstacle::What;
  const Limit& limit = limits.limit(obstacle.limit);
  const std::string needs = number(rounded_up(obstacle.needs), 3);
  const std::string of = (limit.name.starts_with("consumable resource") ? "of " : "") + limit.name;
  const std::string kept = number(obstacle.kept, 3) + " are kept for shares that are not active";
  switch (obstacle.what) {
    case What::reserved: {
      const auto& claim = *limits.claim(obstacle.limit);
      return behind_reason(*claim.by_whom, claim.reason);
    }
    case What::too_small:
      return "needs " + needs + " " + of + ", which has at most " + number(limit.total, 3) +
             (obstacle.kept > 0 ? ", of which " + kept : "") +
             (obstacle.kept > 0 && obstacle.needs <= limit.total
                  ? ": lower the reservation of its scheduling policy"
              : limit.remedy.empty() ? ""
                                     : ": " + limit.remedy);
    case What::full:
      break;
  }
  const double used = limits.used(obstacle.limit);
  return "waits for " +
         number(rounded_up(obstacle.needs + obstacle.kept - limits.free(obstacle.limit)), 3) +
         " more " + of + " (needs " + needs + ", " + number(rounded_up(used), 3) + " of its " +
         number(limit.total, 3) + " are used" + (obstacle.kept > 0 ? " and " + kept : "") + ")";
}

std::string quota_reason(const std::string& share, const Quotas::Obstacle& obstacle) {
  using What = Quotas::Obstacle::What;
  if (obstacle.what == What::no_share)
    return "waits for quota share " + share + ", which no longer exists";
  const std::string unit(obstacle.unit), needs = number(rounded_up(obstacle.needs), 3);
  const std::string own = number(obstacle.capacity, 3);
  const std::string borrowable =
      obstacle.borrowable > 0 ? ", and may borrow " + number(obstacle.borrowable, 3) : "";
  if (obstacle.what == What::too_small)
    return "needs " + needs + " " + unit + " of quota share " + share + ", which has " + own +
           borrowable + ": raise its capacity";
  const double more = obstacle.used + obstacle.needs - obstacle.capacity;
  if (!obstacle.borrows || more <= 0)
    return "waits for " + needs + " " + unit + " of quota share " + share + " (" +
           number(obstacle.used, 3) + " of its " + own + " are used, other shares borrow the rest)";
  return "waits for " + number(rounded_up(more), 3) + " more " + unit + " of quota share " + share +
         " (needs " + needs + ", " + number(obstacle.used, 3) + " of its " + own + " are used" +
         borrowable + ")";
}

std::string preempted_reason(const std::vector<std::string_view>& who) {
  if (who.empty()) return "waits for jobs that are ending";
  std::string text = "waits for ";
  for (size_t i = 0; i < std::min(who.size(), kHoldersMax); ++i)
    text += (i == 0 ? "" : i + 1 == who.size() ? " and " : ", ") + std::string(who[i]);
  if (who.size() > kHoldersMax)
    text += " and " + std::to_string(who.size() - kHoldersMax) + " more";
  return text + (who.size() == 1 ? ", which is preempted for it" : ", which are preempted for it");
}

std::string preemption_reason(const WaitingJob& by, const Running& from) {
  if (by.share == from.share) return by.name + " of quota share " + by.share + " is more urgent";
  return by.name + " of quota share " + by.share + " reclaims what quota share " + from.share +
         " has borrowed";
}

std::string behind_reason(const std::string& first, const std::string& its_reason) {
  return "waits behind " + first + ", which " + its_reason;
}

std::string starts_by(Instant at) { return "; starts by " + latest(at); }

std::string free_by(Instant at) { return "; it is free by " + latest(at); }

std::string scaled_note(const Machine& machine, const std::vector<HostRequest>& requested,
                        const std::vector<Group>& given) {
  Share sum;
  uint32_t hosts = 0;
  for (const HostRequest& request : requested) {
    hosts += request.count;
    sum.cpus += request.share.cpus * request.count;
    sum.memory_bytes += request.share.memory_bytes * request.count;
    sum.gpus += request.share.gpus * request.count;
  }
  const Share& first = given.front().share;
  const bool scaled = first.cpus < requested.front().share.cpus ||
                      first.memory_bytes < requested.front().share.memory_bytes;
  std::string note;
  if (scaled) {
    const std::string part = hosts == 1
                                 ? "the host gets the whole machine"
                                 : "each host gets 1/" + std::to_string(hosts) + " of the machine";
    // Rounded down, so that the parts never add up to more than the machine.
    const auto gib = [](const Share& share) {
      return number(std::floor(amount(share, Resource::memory) * 10) / 10, 1) + " GiB";
    };
    note = "this machine has " + number(machine.total.cpus, 3) + " vCPU and " + gib(machine.total) +
           "; " + types(requested) + " requires " + number(sum.cpus, 3) + " vCPU and " + gib(sum) +
           ": " + part + ": " + number(rounded_down(first.cpus), 3) + " vCPU, " + gib(first);
  }
  int64_t given_gpus = 0;
  for (const Group& group : given) given_gpus += group.share.gpus * group.count;
  if (given_gpus < sum.gpus) {
    if (!note.empty()) note += ". ";
    const std::string gpus = machine.total.gpus == 0
                                 ? "no GPU"
                                 : trainyard::counted(uint64_t(machine.total.gpus), "GPU");
    note += (note.empty() ? "this machine has " : "It has ") + gpus + "; " + types(requested) +
            " requires " + std::to_string(sum.gpus) + ": " +
            (given_gpus == 0 ? std::string("it runs without")
                             : "it runs with " + std::to_string(given_gpus) + " over its hosts");
  }
  return note;
}

}  // namespace trainyard::schedule
