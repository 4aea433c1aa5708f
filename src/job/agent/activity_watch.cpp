#include "agent/activity_watch.hpp"

namespace trainyard::agent {

void ActivityWatch::follow(Counter& counter, uint64_t value, Time now) {
  if (value == counter.value) return;
  counter.value = value;
  counter.changed_at = now;
  changed_ = true;
}

std::optional<wire::Activity> ActivityWatch::look(uint64_t bytes_printed,
                                                  const std::vector<ActivitySlot>& slots,
                                                  Time now) {
  follow(output_, bytes_printed, now);
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
  if (!changed_ || (reported_at_ && now - *reported_at_ < kActivityInterval)) return {};
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
  return activity;
}

}  // namespace trainyard::agent
