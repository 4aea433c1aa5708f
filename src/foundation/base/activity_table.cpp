#include "base/activity_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "base/enum_table.hpp"

namespace trainyard {

static_assert(std::endian::native == std::endian::little);

static_assert(sizeof(CallRecord) == (12 + 3 * kCallLinks) * sizeof(uint64_t));

namespace {

constexpr uint64_t kCallKindMax = 255;

constexpr EnumTable<CallKind> kCallKinds{"kind of call",
                                         {{CallKind::none, "none"},
                                          {CallKind::allreduce, "allreduce"},
                                          {CallKind::reduce_scatter, "reduce_scatter"},
                                          {CallKind::all_gather, "all_gather"},
                                          {CallKind::broadcast, "broadcast"},
                                          {CallKind::reduce, "reduce"},
                                          {CallKind::gather, "gather"},
                                          {CallKind::scatter, "scatter"},
                                          {CallKind::all_to_all, "all_to_all"},
                                          {CallKind::barrier, "barrier"},
                                          {CallKind::named_tensors, "named tensors"},
                                          {CallKind::other, "collective"}}};

// Calls visit(number, slot) for the first slot of each rank.
template <class Visit>
void each_slot(std::string_view bytes, const Visit& visit) {
  std::set<uint64_t> ranks;
  const size_t count = std::min(bytes.size() / sizeof(ActivitySlot), kActivitySlots);
  for (size_t i = 0; i < count; ++i) {
    ActivitySlot slot;
    std::memcpy(&slot, bytes.data() + i * sizeof slot, sizeof slot);
    if (slot.rank_and_one == 0 || slot.rank_and_one > kActivityRankMax) continue;
    if (ranks.insert(slot.rank_and_one).second) visit(i, slot);
  }
}

}  // namespace

std::string_view to_string(CallKind kind) {
  return kCallKinds.text(std::min(kind, CallKind::other));
}

std::vector<ActivitySlot> read_activity(std::string_view bytes) {
  std::vector<ActivitySlot> slots;
  each_slot(bytes, [&](size_t, const ActivitySlot& slot) { slots.push_back(slot); });
  return slots;
}

std::vector<RankRecord> read_calls(std::string_view bytes) {
  std::vector<RankRecord> records;
  if (bytes.size() < kActivityTableBytes) return records;
  each_slot(bytes, [&](size_t number, const ActivitySlot& slot) {
    RankRecord record{slot.rank_and_one - 1, {}};
    CallRecord& calls = record.calls;
    std::memcpy(&calls, bytes.data() + kActivityBytes + number * sizeof calls, sizeof calls);
    if (calls.writer == 0 || calls.ranks < 2 || calls.ranks > kActivityRankMax ||
        calls.rank >= calls.ranks)
      return;
    calls.kind = std::min(calls.kind, kCallKindMax);
    for (CallLink& link : calls.links)
      if (link.peer_and_one > calls.ranks) link = {};
    records.push_back(record);
  });
  return records;
}

}  // namespace trainyard
