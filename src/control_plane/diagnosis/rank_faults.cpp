#include "diagnosis/rank_faults.hpp"

#include <algorithm>
#include <map>

#include "base/activity_table.hpp"
#include "base/enum_table.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"

namespace trainyard::diagnosis {
namespace {

constexpr EnumTable<FaultKind> kFaultKinds{"fault",
                                           {{FaultKind::stuck_rank, "StuckRank"},
                                            {FaultKind::stopped_rank, "StoppedRank"},
                                            {FaultKind::other_call, "OtherCall"},
                                            {FaultKind::slow_rank, "SlowRank"},
                                            {FaultKind::slow_loader, "SlowLoader"},
                                            {FaultKind::slow_link, "SlowLink"}}};

constexpr double kShownFactorMax = 1'000;  // larger factors are shown as this one

bool is_inside(const RankState& rank) { return rank.calls.kind != 0; }

// Returns true for a rank inside a call without a sign of life: it was stopped, or its process was
// killed and its record remains.
bool has_stopped(const RankState& rank) {
  return is_inside(rank) && std::min(rank.calls.since_beat, rank.calls.unchanged) >= kStoppedAfter;
}

std::string rank_text(uint32_t rank, domain::HostIndex host) {
  return "rank " + std::to_string(rank) + " on " + domain::host_name(host);
}
std::string rank_text(const RankState& rank) { return rank_text(rank.calls.rank, rank.host); }

// "allreduce of 4.0 MiB"
std::string call_text(const wire::RankCalls& calls) {
  std::string text(to_string(CallKind(calls.kind)));
  if (calls.bytes > 0) text += " of " + human_bytes(calls.bytes);
  return text;
}

std::string seconds_text(Duration duration) {
  return std::to_string(duration.count() / 1000) + " s";
}

std::string decimal_text(double value) {
  const auto tenths = int64_t(std::clamp(value, 0.0, kShownFactorMax) * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string percent_text(double share) {
  return std::to_string(int(std::clamp(share, 0.0, 1.0) * 100 + 0.5)) + "%";
}

// Returns the median; the lower one of two.
double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

uint64_t fewest_completed(std::span<const RankState> ranks) {
  return std::ranges::min_element(ranks, {},
                                  [](const RankState& rank) { return rank.calls.completed; })
      ->calls.completed;
}

// Finds the ranks for which others wait, and the longest wait. Stopped ranks do not wait: a killed
// group leaves records of ranks inside and outside of calls.
struct LateRanks {
  std::vector<const RankState*> late;
  size_t waiting = 0;
  Duration waited{};
  const RankState* waiter = nullptr;  // the rank that has waited longest
};

LateRanks find_late(std::span<const RankState> ranks) {
  LateRanks found;
  if (ranks.empty()) return found;
  const uint64_t fewest = fewest_completed(ranks);
  for (const RankState& rank : ranks) {
    if (!is_inside(rank)) {
      if (rank.calls.completed == fewest) found.late.push_back(&rank);
      continue;
    }
    if (has_stopped(rank)) continue;
    ++found.waiting;
    if (found.waiter && rank.calls.unchanged <= found.waited) continue;
    found.waited = rank.calls.unchanged;
    found.waiter = &rank;
  }
  if (found.waiting == 0) found.late.clear();
  return found;
}

std::string stuck_text(const RankState& rank, const LateRanks& found, Duration late) {
  const bool named = found.waiter->calls.kind == uint8_t(CallKind::named_tensors);
  const std::string what =
      named ? "has submitted no tensor"
            : "has not begun collective " + std::to_string(rank.calls.completed + 1);
  return rank_text(rank) + " seems to be stuck: it " + what + " for " + seconds_text(late) +
         ", and " + counted(found.waiting, "rank") + (found.waiting == 1 ? " waits" : " wait") +
         " for it in " + call_text(found.waiter->calls);
}

void add_stuck(std::span<const RankState> ranks, Duration longest_pause,
               std::vector<RankFault>& faults) {
  const LateRanks found = find_late(ranks);
  // A rank that entered early waits for all others, so none of them is stuck.
  const bool most = found.late.size() * 2 > ranks.size();
  for (const RankState* rank : found.late) {
    const bool quick =
        rank->host_idle >= kStuckAfter / 2 && rank->calls.completed >= kStartCalls && !most;
    const Duration limit =
        std::max(quick ? kStuckAfter : kBusyStuckAfter, 2 * std::min(longest_pause, kPauseMax));
    const Duration late = std::min(rank->calls.unchanged, found.waited);
    if (late < limit || faults.size() >= kFaultsMax) continue;
    faults.push_back({.kind = FaultKind::stuck_rank,
                      .host = rank->host,
                      .rank = rank->calls.rank,
                      .text = stuck_text(*rank, found, late)});
  }
}

// Adds ranks inside a call without a sign of life, while others of the group give one.
void add_stopped(std::span<const RankState> ranks, std::vector<RankFault>& faults) {
  const uint64_t fewest = fewest_completed(ranks);
  const bool others_live = std::ranges::any_of(
      ranks, [&](const RankState& rank) { return is_inside(rank) && !has_stopped(rank); });
  if (!others_live) return;
  for (const RankState& rank : ranks) {
    if (!has_stopped(rank) || rank.calls.completed != fewest || faults.size() >= kFaultsMax)
      continue;
    faults.push_back({.kind = FaultKind::stopped_rank,
                      .host = rank.host,
                      .rank = rank.calls.rank,
                      .text = rank_text(rank) + " has stopped: it is in collective " +
                              std::to_string(rank.calls.completed + 1) + " (" +
                              call_text(rank.calls) + "), and has given no sign of life for " +
                              seconds_text(rank.calls.since_beat)});
  }
}

// Adds the ranks that are in a different call from most ranks with as many completed calls.
void add_other_calls(std::span<const RankState> ranks, std::vector<RankFault>& faults) {
  const uint64_t fewest = fewest_completed(ranks);
  std::map<uint64_t, std::vector<const RankState*>> by_label;
  for (const RankState& rank : ranks)
    if (is_inside(rank) && rank.calls.completed == fewest && rank.calls.label != 0 &&
        rank.calls.unchanged >= kOtherCallAfter)
      by_label[rank.calls.label].push_back(&rank);
  if (by_label.size() < 2) return;
  // If two calls are equally frequent, the call of the first rank counts.
  const auto& most = std::ranges::max_element(by_label, [](const auto& a, const auto& b) {
                       if (a.second.size() != b.second.size())
                         return a.second.size() < b.second.size();
                       return a.second.front()->calls.rank > b.second.front()->calls.rank;
                     })->second;
  for (const auto& [label, those] : by_label) {
    if (label == most.front()->calls.label) continue;
    for (const RankState* rank : those) {
      if (faults.size() >= kFaultsMax) return;
      faults.push_back(
          {.kind = FaultKind::other_call,
           .host = rank->host,
           .rank = rank->calls.rank,
           .text = rank_text(*rank) + " calls collectives in a different order: its collective " +
                   std::to_string(fewest + 1) + " is " + call_text(rank->calls) + ", that of " +
                   counted(most.size(), "other rank") + " is " + call_text(most.front()->calls)});
    }
  }
}

double cycle_of(std::span<const RankRate> ranks) {
  std::vector<double> cycles;
  for (const RankRate& rank : ranks) cycles.push_back(rank.inside + rank.outside);
  return median_of(std::move(cycles));
}

struct MeasuredLink {
  const RankRate* from;
  const RankRate* to;
  double busy, bytes_per_second;
};

std::vector<MeasuredLink> measured_links(std::span<const RankRate> ranks) {
  std::map<uint32_t, const RankRate*> by_group_rank;
  for (const RankRate& rank : ranks) by_group_rank[rank.group_rank] = &rank;
  std::vector<MeasuredLink> links;
  for (const RankRate& rank : ranks)
    for (const RankRate::Link& link : rank.links) {
      const auto peer = by_group_rank.find(link.peer);
      if (peer != by_group_rank.end() && link.bytes >= kLinkBytesMin)
        links.push_back(
            {&rank, peer->second, link.busy, link.bytes / std::max(link.busy, kLinkBusyMin)});
    }
  return links;
}

std::string rate_text(double bytes_per_second) {
  return human_bytes(uint64_t(std::clamp(bytes_per_second, 0.0, 1e15))) + "/s";
}

void add_slow_links(std::span<const RankRate> ranks, double cycle, std::vector<RankFault>& faults) {
  const auto links = measured_links(ranks);
  if (links.size() < 2) return;
  std::vector<double> rates;
  for (const MeasuredLink& link : links) rates.push_back(link.bytes_per_second);
  std::ranges::sort(rates);
  const double usual = rates[rates.size() / 2];
  std::vector<MeasuredLink> slow;
  for (const MeasuredLink& link : links)
    if (link.busy >= kBusyShare * cycle && link.bytes_per_second * kLinkFactor <= usual)
      slow.push_back(link);
  if (slow.size() > std::max<size_t>(1, links.size() / kLinksOfSlowOne)) return;
  for (const MeasuredLink& link : slow) {
    if (faults.size() >= kFaultsMax) return;
    faults.push_back({.kind = FaultKind::slow_link,
                      .host = link.from->host,
                      .rank = link.from->rank,
                      .peer = link.to->rank,
                      .text = "the link from " + rank_text(link.from->rank, link.from->host) +
                              " to " + rank_text(link.to->rank, link.to->host) +
                              " is slow: it takes " + rate_text(link.bytes_per_second) +
                              ", the median link " + rate_text(usual) + ", and it is busy " +
                              percent_text(link.busy / cycle) + " of the time"});
  }
}

}  // namespace

std::string_view to_string(FaultKind kind) { return kFaultKinds.text(kind); }

std::vector<RankFault> waiting_faults(std::span<const RankState> ranks, Duration longest_pause) {
  std::vector<RankFault> faults;
  if (ranks.size() < 2) return faults;
  add_other_calls(ranks, faults);
  if (!faults.empty()) return faults;
  add_stopped(ranks, faults);
  if (!faults.empty()) return faults;
  add_stuck(ranks, longest_pause, faults);
  return faults;
}

std::optional<Duration> present_pause(std::span<const RankState> ranks) {
  const LateRanks found = find_late(ranks);
  std::optional<Duration> pause;
  for (const RankState* rank : found.late)
    pause = std::max(pause.value_or(0ms), std::min(rank->calls.unchanged, found.waited));
  return pause;
}

std::vector<RankFault> slow_faults(std::span<const RankRate> ranks) {
  std::vector<RankFault> faults;
  if (ranks.size() < 2) return faults;
  std::vector<double> outside, loading;
  for (const RankRate& rank : ranks) {
    outside.push_back(rank.outside);
    loading.push_back(rank.loading);
  }
  const double usual = median_of(outside), usual_loading = median_of(loading);
  const double cycle = cycle_of(ranks);
  if (!(cycle > 0)) return faults;
  for (const RankRate& rank : ranks) {
    const double excess = rank.outside - usual;
    if (rank.outside < kSlowFactor * usual || excess < kSlowCycleShare * cycle ||
        faults.size() >= kFaultsMax)
      continue;
    const bool loads = rank.loading - usual_loading >= kLoadingShare * excess;
    faults.push_back(
        {.kind = loads ? FaultKind::slow_loader : FaultKind::slow_rank,
         .host = rank.host,
         .rank = rank.rank,
         .text = std::string(loads ? "the loader of " : "") + rank_text(rank.rank, rank.host) +
                 " is slow: between collectives the rank takes " +
                 (usual > 0 ? decimal_text(rank.outside / usual) + " times as long as the median"
                            : std::string("time, and most others none")) +
                 (loads ? ", and most of the difference is waiting for its input" : "")});
  }
  if (faults.empty()) add_slow_links(ranks, cycle, faults);
  return faults;
}

}  // namespace trainyard::diagnosis
