#include "base/activity_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

namespace trainyard {

static_assert(std::endian::native == std::endian::little);

std::vector<ActivitySlot> read_activity(std::string_view bytes) {
  std::vector<ActivitySlot> slots;
  std::set<uint64_t> ranks;
  const size_t count = std::min(bytes.size() / sizeof(ActivitySlot), kActivitySlots);
  for (size_t i = 0; i < count; ++i) {
    ActivitySlot slot;
    std::memcpy(&slot, bytes.data() + i * sizeof slot, sizeof slot);
    if (slot.rank_and_one == 0 || slot.rank_and_one > kActivityRankMax) continue;
    if (ranks.insert(slot.rank_and_one).second) slots.push_back(slot);
  }
  return slots;
}

}  // namespace trainyard
