#include "collectives/transport/shm/registered_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/check.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::collectives {

template <class Make>
Result<std::span<std::byte>> RegisteredMemory::keep(const Make& make) {
  const MutexLock lock(mutex_);
  for (uint32_t region = 1; region < kRegionsMax; ++region) {
    Piece& piece = pieces_[region];
    if (piece.generation != 0) continue;
    piece.memory = TRY(make());
    piece.generation = ++generations_;
    ++count_;
    return std::span(piece.memory.begin(), piece.memory.bytes());
  }
  return exhausted("a process can register at most " + std::to_string(kRegionsMax - 1) +
                   " pieces of memory");
}

Result<std::span<std::byte>> RegisteredMemory::allocate(size_t bytes) {
  const auto kept =
      TRY(keep([&] { return SharedMemory::make("trainyard-buffer", std::max<size_t>(bytes, 1)); }));
  return kept.first(bytes);
}

void RegisteredMemory::free(std::byte* begin) {
  const MutexLock lock(mutex_);
  for (Piece& piece : pieces_) {
    if (piece.generation == 0 || piece.memory.begin() != begin) continue;
    piece.memory = {};
    piece.generation = 0;
    --count_;
    return;
  }
  CHECK(false, "the freed memory was allocated here");
}

Result<std::unique_ptr<InPlaceMemory>> RegisteredMemory::register_in_place(
    std::span<std::byte> memory) {
  const auto page_bytes = uintptr_t(::sysconf(_SC_PAGESIZE));
  const auto begin =
      (reinterpret_cast<uintptr_t>(memory.data()) + page_bytes - 1) / page_bytes * page_bytes;
  const auto end =
      (reinterpret_cast<uintptr_t>(memory.data()) + memory.size()) / page_bytes * page_bytes;
  if (memory.empty() || end <= begin)
    return invalid("the memory to register contains no whole page");
  const std::span pages(reinterpret_cast<std::byte*>(begin), end - begin);
  const auto kept = TRY(keep([&] { return SharedMemory::make_at("trainyard-in-place", pages); }));
  return std::make_unique<InPlaceMemory>(shared_from_this(), kept);
}

InPlaceMemory::InPlaceMemory(std::shared_ptr<RegisteredMemory> registered,
                             std::span<std::byte> pages)
    : registered_(std::move(registered)), pages_(pages), process_(::getpid()) {}

InPlaceMemory::~InPlaceMemory() {
  // A child of fork() has private pages already, and a thread that does not exist in the child may
  // hold its lock.
  if (::getpid() == process_) registered_->free(pages_.data());
}

RegisteredMemory::Location RegisteredMemory::find(std::span<const std::byte> bytes) const {
  if (empty()) return {};
  const MutexLock lock(mutex_);
  for (uint32_t region = 1; region < kRegionsMax; ++region) {
    const Piece& piece = pieces_[region];
    if (piece.generation == 0) continue;
    const std::byte* begin = piece.memory.begin();
    if (bytes.data() >= begin && bytes.data() + bytes.size() <= begin + piece.memory.bytes()) {
      return {region, piece.generation, uint64_t(bytes.data() - begin), piece.memory.descriptor(),
              piece.memory.bytes()};
    }
  }
  return {};
}

}  // namespace trainyard::collectives
