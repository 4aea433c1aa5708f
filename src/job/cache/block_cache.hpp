// Keeps blocks of objects on disk for all jobs of a machine, within a limit of bytes.
//
// A block is written to a temporary file and renamed, so a reader sees all of it or none, and its
// checksum is verified at each read: a crash, or a disk that lost pages, costs a fetch and is never
// seen by a job. Beyond the limit the least recently used blocks are removed; one that is being
// read stays readable to its reader. No further blocks are kept on a disk that is nearly full.
//
// Pinned blocks (pins.hpp) are not removed. The lock of a block, held while it is fetched, lets
// other processes wait for it rather than fetch it as well; the kernel releases it when its holder
// ends.
//
// The limit is approximate: each process counts what it wrote, and reads the directory again after
// a 32nd of the limit; removal leaves a tenth free.
//
// Threads: callable from anywhere, in any number of processes on one directory.
// Errors: those of files. A broken block is removed and counts as absent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "cache/block.hpp"
#include "cache/fetch_lock.hpp"
#include "cache/pins.hpp"
#include "os/disk.hpp"

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
  uint64_t without_space = 0;  // blocks that put() did not keep
};

struct CachedBlock {
  BlockId id;
  Digest hash{};
  uint64_t bytes = 0;  // on disk
  Instant used;
};

struct DroppedBlocks {
  uint64_t removed = 0, bytes = 0;
  uint64_t held = 0;  // blocks that stay, since a running job holds them
};

class BlockCache {
 public:
  // Makes the directory, accessible to this process's user alone. `faults`: for tests.
  static Result<std::unique_ptr<BlockCache>> open(CacheSettings settings,
                                                  FileFaults* faults = nullptr);

  // Returns the content and marks the block as used; nothing if it is absent.
  Result<std::optional<std::string>> get(const BlockId& id);
  // Stores a block, or replaces it, unless the limits above forbid it.
  Result<void> put(const BlockId& id, std::string_view content);
  // Returns whether the block is on disk, without reading it: it may be broken.
  bool has(const BlockId& id) const;
  // Returns whether put() would keep a block of this size now.
  bool keeps(uint64_t bytes) const;
  // Returns the lock to take before fetching a block.
  Result<FetchLock> fetch_lock(const BlockId& id) const;
  // Removes the least recently used blocks, until nine tenths of the limit are used. Errors also:
  // corrupt: a pin cannot be read, and nothing is removed.
  Result<void> trim();

  // Pins the first blocks, as many as fit, for as long as the result lives. `own_bytes_max`: limit
  // of this pin.
  Result<std::unique_ptr<HeldPin>> hold(const std::string& name, std::vector<PinnedBlock> wanted,
                                        uint64_t own_bytes_max = UINT64_MAX);
  // Pins blocks until unpin(). Errors also: exhausted: they do not fit.
  Result<void> keep_pinned(Pin pin);
  // Returns false if no pin has this name.
  Result<bool> unpin(const std::string& name);
  Result<std::vector<FoundPin>> pins();
  uint64_t pinned_bytes_max() const { return pins_.bytes_max(); }

  // Visits all blocks, in no order. It may miss blocks that other processes add or remove
  // meanwhile.
  Result<void> visit(const std::function<void(const CachedBlock&)>& visitor) const;
  // Removes the blocks for which `which` is true, unless a running job holds them.
  Result<DroppedBlocks> drop(const std::function<bool(const BlockId&)>& which);
  CacheCounts counts() const;
  const CacheSettings& settings() const { return settings_; }

 private:
  BlockCache(CacheSettings settings, FileFaults* faults);
  Result<void> trim_locked() REQUIRES(mutex_);
  Result<void> trim_if_due_locked() REQUIRES(mutex_);
  Result<void> write(const std::string& path, std::string_view bytes) const;
  std::string lock_path() const { return settings_.directory + "/lock"; }

  const CacheSettings settings_;
  const os::Disk disk_;
  Pins pins_;
  std::atomic<uint64_t> hits_ = 0, misses_ = 0, broken_ = 0, kept_ = 0, removed_ = 0,
                        without_space_ = 0;
  std::atomic<uint64_t> neighbours_ = 0;  // names of files that are being written
  Mutex mutex_;
  uint64_t written_since_trim_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::cache
