#include "agent/activity_watch.hpp"

namespace trainyard::agent {

void ActivityWatch::update_counter(Counter& counter, uint64_t value, Time now) {
  if (value == counter.value) return;
  counter.value = value;
  counter.changed_at = now;
  changed_ = true;
}

void ActivityWatch::update_ranks(const std::vector<ActivitySlot>& slots, Time now) {
  // Drops the ranks that are no longer in the table.
  std::map<uint64_t, Rank> ranks;
  for (const ActivitySlot& slot : slots) {
    const auto known = ranks_.find(slot.rank_and_one - 1);
    Rank& rank = ranks[slot.rank_and_one - 1];
    if (known != ranks_.end())
      rank = known->second;
    else
      changed_ = true;
    update_counter(rank.output, slot.output_bytes, now);
    update_counter(rank.collectives, slot.collectives, now);
  }
  ranks_ = std::move(ranks);
}

void ActivityWatch::update_calls(const std::vector<RankRecord>& records, Time now) {
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
  // Only the agent can measure how long a rank did not change its record, and how long the host was
  // idle.
  changed_ |= !all.empty();
  calls_ = std::move(all);
}

void ActivityWatch::update_idle(std::optional<std::chrono::nanoseconds> cpu, size_t ranks,
                                Time now) {
  // The time before the first update is unknown.
  const auto elapsed = static_cast<double>((now - updated_at_.value_or(now)).count());
  const double most = kIdleHostCores + kWaitingRankCores * static_cast<double>(ranks);
  if (!updated_at_ || !cpu || static_cast<double>((*cpu - cpu_).count()) > elapsed * most)
    idle_since_ = now;
  if (cpu) cpu_ = *cpu;
  updated_at_ = now;
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
    out.since_beat = since(calls.beat_at);
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

std::optional<wire::Activity> ActivityWatch::update(uint64_t bytes_printed,
                                                    const std::vector<ActivitySlot>& slots,
                                                    Time now,
                                                    const std::vector<RankRecord>& records,
                                                    std::optional<std::chrono::nanoseconds> cpu) {
  update_counter(output_, bytes_printed, now);
  update_ranks(slots, now);
  update_calls(records, now);
  update_idle(cpu, records.size(), now);
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
