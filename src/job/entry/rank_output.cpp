#include "entry/rank_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/activity_table.hpp"

namespace trainyard::entry {

RankOutput::RankOutput(const std::string& path) {
  if (!path.empty()) table_ = os::File(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
}

void RankOutput::add(int rank) {
  if (!table_ || slots_.size() >= kActivitySlots) return;
  const Slot slot{slots_.size() * sizeof(ActivitySlot), 0};
  slots_.emplace(rank, slot);
  write(slot.offset + offsetof(ActivitySlot, rank_and_one), uint64_t(rank) + 1);
}

void RankOutput::count(int rank, size_t bytes) {
  const auto found = slots_.find(rank);
  if (bytes == 0 || found == slots_.end()) return;
  found->second.bytes += bytes;
  write(found->second.offset + offsetof(ActivitySlot, output_bytes), found->second.bytes);
}

void RankOutput::write(size_t offset, uint64_t value) const {
  (void)!::pwrite(table_.descriptor(), &value, sizeof value, off_t(offset));
}

}  // namespace trainyard::entry
