// RegisteredMemory is memory that local ranks read and write directly: allocated for this purpose,
// or registered in place.
//
// Registration in place replaces the pages by pages of a memfd with the same content: pointers stay
// valid, and a peer can map the pages. So the buffers of a framework are reduced without a copy,
// and without changes to the framework.
//
// Threads: call from any thread. Lifetime: shared by the groups of a process, so that one
//          registration serves all of them, and by every InPlaceMemory; the last one frees it.
// Errors:  exhausted, if kRegionsMax pieces are in use; unavailable, if memory cannot be shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "collectives/group.hpp"
#include "collectives/transport/shm/segment.hpp"

namespace trainyard::collectives {

class RegisteredMemory : public std::enable_shared_from_this<RegisteredMemory> {
 public:
  Result<std::span<std::byte>> allocate(size_t bytes);
  void free(std::byte* begin);
  // Registers the whole pages of `memory` in place. Requires: a shared_ptr owns this; no thread
  // writes to the memory meanwhile.
  Result<std::unique_ptr<InPlaceMemory>> register_in_place(std::span<std::byte> memory);

  struct Location {
    uint32_t region = 0;  // 0: not registered
    uint32_t generation = 0;
    uint64_t offset = 0;
    int descriptor = -1;
    uint64_t region_bytes = 0;
  };
  Location find(std::span<const std::byte> bytes) const;
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Piece {
    SharedMemory memory;
    uint32_t generation = 0;
  };
  // Stores the memory that make() returns at a free index.
  template <class Make>
  Result<std::span<std::byte>> keep(const Make& make);

  mutable Mutex mutex_;
  Piece pieces_[kRegionsMax] GUARDED_BY(mutex_);  // index 0 is not used
  uint32_t generations_ GUARDED_BY(mutex_) = 0;
  std::atomic<size_t> count_ = 0;
};

}  // namespace trainyard::collectives
