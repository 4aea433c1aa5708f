#include "diagnosis/rank_watch.hpp"

#include <algorithm>
#include <iterator>

namespace trainyard::diagnosis {
namespace {

double seconds_for_each(uint64_t from_us, uint64_t to_us, uint64_t calls) {
  return double(to_us - from_us) * 1e-6 / double(calls);
}

// Returns true if no counter of the rank has decreased. Jobs may write any numbers.
bool has_grown(const wire::RankCalls& from, const wire::RankCalls& to) {
  return to.completed >= from.completed && to.inside_us >= from.inside_us &&
         to.outside_us >= from.outside_us && to.loading_us >= from.loading_us;
}

// Requires: has_grown(from, calls of rank), and at least one call was completed.
RankRate rate_of(const wire::RankCalls& from, const RankState& rank) {
  const wire::RankCalls& to = rank.calls;
  const uint64_t calls = to.completed - from.completed;
  RankRate rate{.host = rank.host, .rank = to.rank, .group_rank = to.group_rank};
  rate.inside = seconds_for_each(from.inside_us, to.inside_us, calls);
  rate.outside = seconds_for_each(from.outside_us, to.outside_us, calls);
  rate.loading = seconds_for_each(from.loading_us, to.loading_us, calls);
  for (const wire::LinkLoad& link : to.links) {
    wire::LinkLoad before;
    for (const wire::LinkLoad& old : from.links)
      if (old.peer == link.peer) before = old;
    if (link.busy_us >= before.busy_us && link.busy_bytes >= before.busy_bytes)
      rate.links.push_back({link.peer, seconds_for_each(before.busy_us, link.busy_us, calls),
                            double(link.busy_bytes - before.busy_bytes) / double(calls)});
  }
  return rate;
}

template <class Faults>
auto find_same(Faults& faults, const RankFault& fault) {
  return std::ranges::find_if(faults, [&](const auto& each) { return each.fault.same_as(fault); });
}

}  // namespace

std::vector<FaultNews> RankWatch::update(const std::vector<RankState>& ranks, Time now) {
  std::map<GroupKey, std::vector<RankState>> by_group;
  for (const RankState& rank : ranks)
    by_group[{rank.calls.group, rank.calls.group_ranks}].push_back(rank);
  std::erase_if(groups_, [&](const auto& each) { return !by_group.contains(each.first); });

  std::vector<RankFault> found;
  for (const auto& [key, members] : by_group) {
    // Skips the rest of a group that has ended, or of which most ranks are unknown.
    if (members.size() < 2 || members.size() * 2 < key.second) continue;
    if (!groups_.contains(key) && groups_.size() >= kGroupsMax) continue;
    update_group(groups_[key], members, now, found);
  }
  found.resize(std::min(found.size(), kPresentMax));

  std::vector<FaultNews> news;
  std::erase_if(present_, [&](const Present& each) {
    const auto same = [&](const RankFault& fault) { return fault.same_as(each.fault); };
    if (std::ranges::any_of(found, same)) return false;
    news.push_back({each.fault, false, std::chrono::duration_cast<Duration>(now - each.began)});
    return true;
  });
  for (RankFault& fault : found) {
    if (find_same(present_, fault) != present_.end()) continue;
    news.push_back({fault, true, {}});
    present_.push_back({std::move(fault), now});
  }
  return news;
}

std::vector<FaultNews> RankWatch::end(Time now) {
  std::vector<FaultNews> news = update({}, now);
  groups_.clear();
  return news;
}

std::vector<RankFault> RankWatch::faults() const {
  std::vector<RankFault> faults;
  for (const Present& each : present_) faults.push_back(each.fault);
  return faults;
}

void RankWatch::update_group(Group& group, const std::vector<RankState>& ranks, Time now,
                             std::vector<RankFault>& found) {
  learn_pause(group, ranks);
  std::ranges::move(waiting_faults(ranks, group.longest_pause), std::back_inserter(found));
  follow_window(group, ranks, now);
  for (const SlowFault& each : group.slow)
    if (each.has_begun) found.push_back(each.fault);
}

void RankWatch::learn_pause(Group& group, const std::vector<RankState>& ranks) {
  const uint64_t completed = std::ranges::min_element(ranks, {}, [](const RankState& rank) {
                               return rank.calls.completed;
                             })->calls.completed;
  if (completed != group.completed) {
    if (completed > group.completed && group.pause >= kPauseMin)
      group.longest_pause = std::max(group.longest_pause, group.pause);
    group.pause = {};
    group.completed = completed;
  }
  if (const auto pause = present_pause(ranks)) group.pause = std::max(group.pause, *pause);
}

void RankWatch::begin_window(Group& group, const std::vector<RankState>& ranks, Time now) {
  group.window_began = now;
  group.at_window.clear();
  for (const RankState& rank : ranks) group.at_window[{rank.host, rank.calls.rank}] = rank.calls;
}

void RankWatch::follow_window(Group& group, const std::vector<RankState>& ranks, Time now) {
  std::vector<RankRate> rates;
  uint64_t fewest = UINT64_MAX;
  for (const RankState& rank : ranks) {
    const auto from = group.at_window.find({rank.host, rank.calls.rank});
    // The ranks or their counters have changed, so their times cannot be compared.
    if (from == group.at_window.end() || ranks.size() != group.at_window.size() ||
        !has_grown(from->second, rank.calls))
      return begin_window(group, ranks, now);
    const uint64_t calls = rank.calls.completed - from->second.completed;
    fewest = std::min(fewest, calls);
    if (calls > 0) rates.push_back(rate_of(from->second, rank));
  }
  const Time length = now - group.window_began;
  if (length < kWindow) return;
  if (fewest >= kWindowCalls)
    end_window(group, slow_faults(rates));
  else if (length < kWindowMax)
    return;
  begin_window(group, ranks, now);
}

void RankWatch::end_window(Group& group, const std::vector<RankFault>& faults) {
  for (SlowFault& each : group.slow) {
    const bool again = std::ranges::any_of(
        faults, [&](const RankFault& fault) { return fault.same_as(each.fault); });
    each.windows = again ? each.windows + 1 : 0;
    each.windows_without = again ? 0 : each.windows_without + 1;
    each.has_begun |= each.windows >= kWindowsToChange;
  }
  std::erase_if(group.slow, [](const SlowFault& each) {
    return each.windows_without >= (each.has_begun ? kWindowsToChange : 1);
  });
  for (const RankFault& fault : faults)
    if (find_same(group.slow, fault) == group.slow.end())
      group.slow.push_back({.fault = fault, .windows = 1});
}

}  // namespace trainyard::diagnosis
