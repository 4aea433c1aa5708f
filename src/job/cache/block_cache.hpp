// Keeps blocks of objects on disk for all jobs of a machine, within a limit of bytes.
//
// A block is written to a temporary file and renamed, so a reader gets all of it or none. Its
// checksum is verified at each read, so after a crash, or if a disk lost pages, the block is
// fetched again and no job gets wrong bytes. Beyond the limit the least recently used blocks are
// removed; a block that is being read stays readable. A disk that is nearly full keeps no further
// blocks.
//
// Pinned blocks (pins.hpp) are not removed. A process holds the lock of a block while it fetches
// the block, so that other processes wait instead of fetching it as well. The kernel releases the
// lock when its holder ends.
//
// The limit is approximate: each process counts the bytes that it wrote, and reads the directory
// again after a 32nd of the limit. A removal leaves a tenth of the limit free.
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
  // Makes the directory, accessible only to the user of this process. `faults`: for tests.
  static Result<std::unique_ptr<BlockCache>> open(CacheSettings settings,
                                                  FileFaults* faults = nullptr);

  // Returns the content and marks the block as used; nullopt if it is absent.
  Result<std::optional<std::string>> get(const BlockId& id);
  // Stores or replaces a block, unless the limits above forbid it.
  Result<void> put(const BlockId& id, std::string_view content);
  // Returns true if the block is on disk. Does not read it, so it may be broken.
  bool has(const BlockId& id) const;
  // Returns true if put() would keep a block of this size now.
  bool keeps(uint64_t bytes) const;
  // Returns the lock to take before fetching a block.
  Result<FetchLock> fetch_lock(const BlockId& id) const;
  // Removes the least recently used blocks, until nine tenths of the limit are used. Errors also:
  // corrupt: a pin cannot be read, and nothing is removed.
  Result<void> trim();

  // Pins as many of the first blocks as fit, for the lifetime of the result. `own_bytes_max`: the
  // limit of this pin.
  Result<std::unique_ptr<HeldPin>> hold(const std::string& name, std::vector<PinnedBlock> wanted,
                                        uint64_t own_bytes_max = UINT64_MAX);
  // Pins blocks until unpin(). Errors also: exhausted: they do not fit.
  Result<void> keep_pinned(Pin pin);
  // Returns false if no pin has this name.
  Result<bool> unpin(const std::string& name);
  Result<std::vector<FoundPin>> pins();
  uint64_t pinned_bytes_max() const { return pins_.bytes_max(); }

  // Visits all blocks, in no defined order. May miss blocks that other processes add or remove
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
  std::atomic<uint64_t> temporary_files_ = 0;  // numbers the files that are being written
  Mutex mutex_;
  uint64_t written_since_trim_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::cache
