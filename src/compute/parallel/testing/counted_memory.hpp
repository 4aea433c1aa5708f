// Counts what the tensors of each thread hold, and limits it.
//
// Threads: guarded by a mutex; a tensor counts for the thread that made it. Lifetime: one at a time
// in a process, while no tensor of libtorch is made on other threads that are not counted.
// Errors: a thread above its limit gets std::bad_alloc from libtorch.
#pragma once

#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_map>

namespace trainyard::parallel::testing {

class CountedMemory {
 public:
  struct Count {
    size_t now = 0, peak = 0;
  };

  explicit CountedMemory(size_t limit_bytes = SIZE_MAX) : limit_(limit_bytes) {
    current() = this;
    former_ = c10::GetCPUAllocator();
    static CountingAllocator allocator;
    c10::SetCPUAllocator(&allocator);
  }
  ~CountedMemory() {
    c10::SetCPUAllocator(former_);
    current() = nullptr;
  }
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;

  // Of the calling thread.
  Count count() const {
    const std::lock_guard lock(mutex());
    const auto found = counts_.find(std::this_thread::get_id());
    return found == counts_.end() ? Count{} : found->second;
  }
  // Ends the limit of all threads.
  void lift_limit() {
    const std::lock_guard lock(mutex());
    limit_ = SIZE_MAX;
  }
  // The peak of the calling thread is what it holds now.
  void restart_peak() {
    const std::lock_guard lock(mutex());
    Count& count = counts_[std::this_thread::get_id()];
    count.peak = count.now;
  }

 private:
  struct Block {
    std::thread::id owner;
    size_t bytes;
  };
  struct CountingAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) const override {
      void* const begin = bytes == 0 ? nullptr : take(bytes);
      return {begin, begin, &give, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &give; }
  };

  static void* take(size_t bytes) {
    const std::lock_guard lock(mutex());
    CountedMemory* const self = current();
    if (self) {
      Count& count = self->counts_[std::this_thread::get_id()];
      if (count.now + bytes > self->limit_) throw std::bad_alloc();
      count.now += bytes;
      count.peak = std::max(count.peak, count.now);
    }
    constexpr size_t alignment = 64;
    void* const begin = std::aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
    if (!begin) throw std::bad_alloc();
    if (self) blocks()[begin] = {std::this_thread::get_id(), bytes};
    return begin;
  }
  static void give(void* begin) {
    if (!begin) return;
    const std::lock_guard lock(mutex());
    const auto found = blocks().find(begin);
    if (found != blocks().end()) {
      if (current()) current()->counts_[found->second.owner].now -= found->second.bytes;
      blocks().erase(found);
    }
    std::free(begin);
  }
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static CountedMemory*& current() {
    static CountedMemory* current = nullptr;
    return current;
  }
  static std::unordered_map<void*, Block>& blocks() {
    static auto* const blocks = new std::unordered_map<void*, Block>;  // outlives tensors
    return *blocks;
  }

  size_t limit_;
  c10::Allocator* former_ = nullptr;
  std::map<std::thread::id, Count> counts_;
};

}  // namespace trainyard::parallel::testing
