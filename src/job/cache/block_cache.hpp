// Keeps blocks of objects on disk for all jobs of a machine, within a limit of bytes.
//
// A block is written to a neighbour and renamed, so a reader sees all of it or none, and its
// checksum is verified at each read: a crash, or a disk that lost pages, costs a fetch and is never
// seen by a job. Beyond the limit the blocks that were not used for longest are removed; one that
// is being read stays readable to its reader. A disk that is nearly full keeps no further blocks.
//
// The limit is approximate: each process counts what it wrote, and reads the directory again after
// a 32nd of the limit; removal leaves a tenth free.
//
// Threads: callable from anywhere, in any number of processes on one directory.
// Errors: those of files. A broken block is removed and counts as absent.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "cache/block.hpp"

namespace trainyard::cache {

struct CacheSettings {
  std::string directory;
  uint64_t bytes_max = 0;
  // Blocks are not kept if fewer bytes than these would be left on the disk.
  uint64_t free_bytes_min = 1 << 30;
};

// Returns the settings of a cache that uses at most a tenth of its disk.
CacheSettings tenth_of_disk(const std::string& directory);

struct CacheCounts {
  uint64_t hits = 0, misses = 0, broken = 0, kept = 0, removed = 0;
};

class BlockCache {
 public:
  // Makes the directory, for the owner of this process alone.
  static Result<std::unique_ptr<BlockCache>> open(CacheSettings settings);

  // Returns the content and marks it as used; nothing: it is absent.
  Result<std::optional<std::string>> get(const BlockId& id);
  // Keeps a block, or not: see above. An existing one is replaced.
  Result<void> put(const BlockId& id, std::string_view content);
  // Removes the blocks that were not used for longest, until nine tenths of the limit are used.
  Result<void> trim();
  CacheCounts counts() const;

 private:
  explicit BlockCache(CacheSettings settings) : settings_(std::move(settings)) {}
  Result<void> trim_locked() REQUIRES(mutex_);

  const CacheSettings settings_;
  std::atomic<uint64_t> hits_ = 0, misses_ = 0, broken_ = 0, kept_ = 0, removed_ = 0;
  std::atomic<uint64_t> neighbours_ = 0;  // names of files that are being written
  Mutex mutex_;
  uint64_t written_since_trim_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::cache
