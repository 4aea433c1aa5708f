#include "collectives/activity.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

// Adds without an atomic addition, since the counter has one writer.
void add(uint64_t& counter, uint64_t value) {
  const std::atomic_ref shared(counter);
  shared.store(shared.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
}

void store(uint64_t& field, uint64_t value) {
  std::atomic_ref(field).store(value, std::memory_order_relaxed);
}

uint64_t load(uint64_t& field) { return std::atomic_ref(field).load(std::memory_order_relaxed); }

uint64_t nanoseconds_between(ActivityCounter::Time from, ActivityCounter::Time to) {
  return to > from ? uint64_t(std::chrono::nanoseconds(to - from).count()) : 0;
}

// Returns a number that identifies this process, and the counter within it.
uint64_t next_writer() {
  static std::atomic<uint32_t> counters = 0;
  return uint64_t(::getpid()) << 32 | (counters.fetch_add(1, std::memory_order_relaxed) + 1);
}

}  // namespace

ActivityCounter::ActivityCounter(const ActivityFile& file, int rank, int ranks) {
  if (file.path.empty()) return;
  const int descriptor = ::open(file.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return;
  struct stat status;
  // A read beyond the end of a shorter file would kill the process (SIGBUS). An agent of an earlier
  // release makes a table without records.
  const off_t bytes =
      ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
  table_bytes_ = bytes >= off_t(kActivityTableBytes) ? kActivityTableBytes : kActivityBytes;
  void* const table =
      bytes >= off_t(kActivityBytes)
          ? ::mmap(nullptr, table_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
          : MAP_FAILED;
  ::close(descriptor);
  if (table == MAP_FAILED) return;
  table_ = table;
  auto* const slots = static_cast<ActivitySlot*>(table);
  ActivitySlot* const slot = take_slot(slots, uint64_t(file.rank) + 1);
  if (!slot) return;
  collectives_ = &slot->collectives;
  if (ranks < 2 || table_bytes_ < kActivityTableBytes) return;
  auto* const records = reinterpret_cast<CallRecord*>(static_cast<char*>(table) + kActivityBytes);
  take_record(records[slot - slots], file, rank, ranks);
}

// If another process wrote the record, its rank has ended.
void ActivityCounter::take_record(CallRecord& record, const ActivityFile& file, int rank,
                                  int ranks) {
  writer_ = next_writer();
  const bool is_of_this_process = load(record.writer) >> 32 == writer_ >> 32;
  if (is_of_this_process && load(record.ranks) >= uint64_t(ranks)) return;
  record_ = &record;
  store(record.writer, writer_);
  store(record.ranks, 0);
  for (uint64_t* field : {&record.completed, &record.kind, &record.bytes, &record.label,
                          &record.beats, &record.inside_ns, &record.outside_ns, &record.loading_ns})
    store(*field, 0);
  for (CallLink& link : record.links)
    for (uint64_t* field : {&link.peer_and_one, &link.busy_ns, &link.busy_bytes}) store(*field, 0);
  store(record.group, file.group);
  store(record.rank, uint64_t(rank));
  store(record.ranks, uint64_t(ranks));
  outside_since_ = std::chrono::steady_clock::now();
}

ActivityCounter::~ActivityCounter() {
  // After fork(), the record belongs to the parent.
  if (describes() && writer_ >> 32 == uint64_t(::getpid())) {
    store(record_->ranks, 0);
    store(record_->writer, 0);
  }
  if (table_) ::munmap(table_, table_bytes_);
}

void ActivityCounter::count() {
  if (collectives_) std::atomic_ref(*collectives_).fetch_add(1, std::memory_order_relaxed);
}

bool ActivityCounter::describes() const { return record_ && load(record_->writer) == writer_; }

void ActivityCounter::announce(Time now) {
  announced_ = describes();
  announced_at_ = now;
}

void ActivityCounter::enter(CallKind kind, uint64_t bytes, uint64_t label) {
  if (!announced_ || inside_.load(std::memory_order_relaxed)) return;
  add(record_->outside_ns, nanoseconds_between(outside_since_, announced_at_));
  store(record_->bytes, bytes);
  store(record_->label, label);
  store(record_->kind, uint64_t(kind));
  inside_.store(true, std::memory_order_relaxed);
}

void ActivityCounter::leave(Time now, bool completed) {
  announced_ = false;
  if (!inside_.exchange(false, std::memory_order_relaxed) || !describes()) return;
  add(record_->inside_ns, nanoseconds_between(announced_at_, now));
  if (completed) add(record_->completed, 1);
  store(record_->kind, uint64_t(CallKind::none));
  outside_since_ = now;
}

void ActivityCounter::pass() {
  if (describes()) add(record_->completed, 1);
}

void ActivityCounter::beat() {
  if (inside_.load(std::memory_order_relaxed) && describes()) add(record_->beats, 1);
}

void ActivityCounter::exclude(Time began, Time ended) {
  if (inside_.load(std::memory_order_relaxed) || !describes()) return;
  add(record_->inside_ns, nanoseconds_between(began, ended));
  outside_since_ += ended - began;
}

void ActivityCounter::set_links(std::span<const LinkLoad> loads) {
  if (loads.empty() || !describes()) return;
  for (size_t i = 0; i < std::min(loads.size(), kCallLinks); ++i) {
    CallLink& link = record_->links[i];
    store(link.busy_bytes, loads[i].bytes);
    store(link.busy_ns, uint64_t(loads[i].busy.count()));
    store(link.peer_and_one, uint64_t(loads[i].peer) + 1);
  }
}

}  // namespace trainyard::collectives
