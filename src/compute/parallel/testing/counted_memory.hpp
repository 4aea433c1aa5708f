// CountedMemory counts the bytes of the tensors of each thread, and limits them.
//
// Threads: call from any thread; a tensor counts for the thread that made it. Lifetime: one at a
// time in a process. Errors: a thread above its limit gets std::bad_alloc from libtorch.
#pragma once

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <thread>
#include <unordered_map>

#include "base/thread_safety.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel::testing {

class CountedMemory {
 public:
  struct Count {
    size_t now = 0, peak = 0;  // bytes
  };

  explicit CountedMemory(size_t limit_bytes = SIZE_MAX) : former_(c10::GetCPUAllocator()) {
    static CountingAllocator allocator;
    start(limit_bytes);
    c10::SetCPUAllocator(&allocator);
  }
  ~CountedMemory() {
    c10::SetCPUAllocator(former_);
    start(SIZE_MAX);
  }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  // Returns the count of the calling thread.
  Count count() const {
    Books& books = all_books();
    const MutexLock lock(books.mutex);
    return books.counts[std::this_thread::get_id()];
  }
  // Ends the limit of all threads.
  void lift_limit() {
    Books& books = all_books();
    const MutexLock lock(books.mutex);
    books.limit = SIZE_MAX;
  }
  // Sets the peak of the calling thread to its current bytes.
  void restart_peak() {
    Books& books = all_books();
    const MutexLock lock(books.mutex);
    Count& count = books.counts[std::this_thread::get_id()];
    count.peak = count.now;
  }

 private:
  struct Block {
    std::thread::id owner;
    size_t bytes;
  };
  struct Books {
    Mutex mutex;
    size_t limit GUARDED_BY(mutex) = SIZE_MAX;
    std::map<std::thread::id, Count> counts GUARDED_BY(mutex);
    std::unordered_map<void*, Block> blocks GUARDED_BY(mutex);  // of all tensors counted so far
  };
  struct CountingAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) const override {
      void* const begin = bytes == 0 ? nullptr : take(bytes);
      return {begin, begin, &give, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &give; }
  };

  // Tensors that were made before are freed without being counted.
  static void start(size_t limit_bytes) {
    Books& books = all_books();
    const MutexLock lock(books.mutex);
    books.limit = limit_bytes;
    books.counts.clear();
    books.blocks.clear();
  }

  static void* take(size_t bytes) {
    constexpr size_t alignment = 64;  // like libtorch's own allocator
    Books& books = all_books();
    const MutexLock lock(books.mutex);
    Count& count = books.counts[std::this_thread::get_id()];
    if (count.now + bytes > books.limit) throw std::bad_alloc();
    void* const begin = std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
    if (!begin) throw std::bad_alloc();
    count.now += bytes;
    count.peak = std::max(count.peak, count.now);
    books.blocks[begin] = {std::this_thread::get_id(), bytes};
    return begin;
  }

  static void give(void* begin) {
    if (!begin) return;
    Books& books = all_books();
    const MutexLock lock(books.mutex);
    const auto found = books.blocks.find(begin);
    if (found != books.blocks.end()) {
      books.counts[found->second.owner].now -= found->second.bytes;
      books.blocks.erase(found);
    }
    std::free(begin);
  }

  static Books& all_books() {
    static Books* const books = new Books;  // outlives the tensors of other statics
    return *books;
  }

  c10::Allocator* const former_;
};

}  // namespace trainyard::parallel::testing
