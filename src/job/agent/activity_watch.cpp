#include "agent/activity_watch.hpp"

namespace trainyard::agent {

void ActivityWatch::follow(Counter& counter, uint64_t value, Time now) {
  if (value == counter.value) return;
  counter.value = value;
  counter.changed_at = now;
  changed_ = true;
}

void ActivityWatch::follow_ranks(const std::vector<ActivitySlot>& slots, Time now) {
  // A rank that is no longer in the table has no activity.
  std::map<uint64_t, Rank> ranks;
  for (const ActivitySlot& slot : slots) {
    const auto known = ranks_.find(slot.rank_and_one - 1);
    Rank& rank = ranks[slot.rank_and_one - 1];
    if (known != ranks_.end())
      rank = known->second;
    else
      changed_ = true;
    follow(rank.output, slot.output_bytes, now);
    follow(rank.collectives, slot.collectives, now);
  }
  ranks_ = std::move(ranks);
}

void ActivityWatch::follow_calls(const std::vector<RankRecord>& records, Time now) {
  std::map<uint64_t, Calls> all;
  for (const auto& [rank, record] : records) {
    const auto known = calls_.find(rank);
    Calls& calls = all[rank];
    if (known != calls_.end() && known->second.group == record.group)
      calls = known->second;
    else
      calls = {record.group, record.completed, record.kind, record.beats, now, now};
    if (calls.completed != record.completed || calls.kind != record.kind)
      calls.changed_at = calls.beat_at = now;
    if (calls.beats != record.beats) calls.beat_at = now;
    calls.completed = record.completed;
    calls.kind = record.kind;
    calls.beats = record.beats;
  }
  // Only the agent can tell for how long a rank gave no sign of life, and a host was idle.
  changed_ |= !all.empty();
  calls_ = std::move(all);
}

void ActivityWatch::follow_processor(std::optional<std::chrono::nanoseconds> cpu, size_t ranks,
                                     Time now) {
  // The time before the first look is unknown.
  const auto elapsed = static_cast<double>((now - looked_at_.value_or(now)).count());
  const double most = kIdleHostCores + kWaitingRankCores * static_cast<double>(ranks);
  if (!looked_at_ || !cpu || static_cast<double>((*cpu - cpu_).count()) > elapsed * most)
    idle_since_ = now;
  if (cpu) cpu_ = *cpu;
  looked_at_ = now;
}

void ActivityWatch::add_calls(const std::vector<RankRecord>& records, Time now,
                              wire::Activity& activity) const {
  const auto since = [now](Time then) { return std::chrono::duration_cast<Duration>(now - then); };
  for (const auto& [rank, record] : records) {
    const Calls& calls = calls_.at(rank);
    wire::RankCalls& out = activity.calls.emplace_back();
    out.rank = uint32_t(rank);
    out.group = record.group;
    out.group_rank = uint32_t(record.rank);
    out.group_ranks = uint32_t(record.ranks);
    out.completed = record.completed;
    out.kind = uint8_t(record.kind);
    out.bytes = record.bytes;
    out.label = record.label;
    out.unchanged = since(calls.changed_at);
    out.beat = since(calls.beat_at);
    out.inside_us = record.inside_ns / 1000;
    out.outside_us = record.outside_ns / 1000;
    out.loading_us = record.loading_ns / 1000;
    for (const CallLink& link : record.links)
      if (link.peer_and_one != 0)
        out.links.push_back(
            {uint32_t(link.peer_and_one - 1), link.busy_ns / 1000, link.busy_bytes});
  }
  activity.idle = since(idle_since_);
}

std::optional<wire::Activity> ActivityWatch::look(uint64_t bytes_printed,
                                                  const std::vector<ActivitySlot>& slots, Time now,
                                                  const std::vector<RankRecord>& records,
                                                  std::optional<std::chrono::nanoseconds> cpu) {
  follow(output_, bytes_printed, now);
  follow_ranks(slots, now);
  follow_calls(records, now);
  follow_processor(cpu, records.size(), now);
  const Duration interval = records.empty() ? kActivityInterval : kCallsInterval;
  if (!changed_ || (reported_at_ && now - *reported_at_ < interval)) return {};
  changed_ = false;
  reported_at_ = now;

  const auto age = [now](const Counter& counter) {
    return counter.changed_at
               ? std::optional(std::chrono::duration_cast<Duration>(now - *counter.changed_at))
               : std::nullopt;
  };
  wire::Activity activity;
  activity.output = age(output_);
  for (const auto& [number, rank] : ranks_)
    activity.ranks.push_back(
        {uint32_t(number), age(rank.output), age(rank.collectives), rank.collectives.value});
  add_calls(records, now, activity);
  return activity;
}

}  // namespace trainyard::agent
