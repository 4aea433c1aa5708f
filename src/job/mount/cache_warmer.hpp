// Fetches the objects of a mount into the cache of its source while a job reads them, in order of
// their paths. So the first read of a block can find it in the cache, and many small objects are
// fetched at once.
//
// Warming ends when all blocks are cached, when the cache keeps no more, or when the source is
// stopped. An object that cannot be fetched is skipped: a read that needs it reports the error.
//
// Threads: made and destroyed by one thread; it fetches on threads of its own.
// Lifetime: source and objects outlive it. The destructor waits for its threads: the source must
// have been stopped, unless the caller wants all blocks.
#pragma once

#include <optional>
#include <thread>
#include <vector>

#include "base/thread_safety.hpp"
#include "mount/block_source.hpp"

namespace trainyard::mount {

class CacheWarmer {
 public:
  CacheWarmer(BlockSource& source, const std::vector<MountedObject>& objects);
  CacheWarmer(const CacheWarmer&) = delete;
  ~CacheWarmer();

 private:
  struct Position {
    size_t object = 0;
    uint64_t block = 0;
  };
  std::optional<Position> next();
  void work();

  BlockSource& source_;
  const std::vector<MountedObject>& objects_;
  Mutex mutex_;
  Position next_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace trainyard::mount
