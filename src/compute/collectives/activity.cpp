#include "collectives/activity.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

namespace trainyard::collectives {
namespace {

// Returns the slot of the rank; nullptr when the table is full.
ActivitySlot* take_slot(ActivitySlot* slots, uint64_t rank_and_one) {
  for (size_t i = 0; i < kActivitySlots; ++i)
    if (std::atomic_ref(slots[i].rank_and_one).load(std::memory_order_relaxed) == rank_and_one)
      return &slots[i];
  for (size_t i = 0; i < kActivitySlots; ++i) {
    uint64_t free = 0;
    if (std::atomic_ref(slots[i].rank_and_one)
            .compare_exchange_strong(free, rank_and_one, std::memory_order_relaxed) ||
        free == rank_and_one)
      return &slots[i];
  }
  return nullptr;
}

}  // namespace

ActivityCounter::ActivityCounter(const ActivityFile& file) {
  if (file.path.empty()) return;
  const int descriptor = ::open(file.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  struct stat status;
  // Touching a page beyond the end of a shorter file would end the process.
  const bool whole = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                     status.st_size >= off_t(kActivityBytes);
  void* const table =
      whole ? ::mmap(nullptr, kActivityBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
            : MAP_FAILED;
  ::close(descriptor);
  if (table == MAP_FAILED) return;
  table_ = table;
  if (ActivitySlot* slot = take_slot(static_cast<ActivitySlot*>(table), uint64_t(file.rank) + 1))
    collectives_ = &slot->collectives;
}

ActivityCounter::~ActivityCounter() {
  if (table_) ::munmap(table_, kActivityBytes);
}

void ActivityCounter::count() {
  if (collectives_) std::atomic_ref(*collectives_).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace trainyard::collectives
