// Manages the pins of a cache: lists of blocks that are not removed as long as the pin exists.
//
// A held pin exists as long as its holder: it is a file with a lock, which the kernel releases when
// the process ends, even by a signal. A kept pin exists until it is removed, and survives power
// loss. All pins together never exceed the limit, so a pinned block never has to be removed: a pin
// that does not fit is rejected, or covers as many blocks as fit.
//
// Threads: callable from anywhere, in any number of processes on one directory. The caller holds
// the cache's lock (BlockCache does).
// Errors: those of files; exhausted: a kept pin does not fit; corrupt: a pin cannot be read, and
// the message names the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cache/pin.hpp"
#include "os/disk.hpp"
#include "os/shared_lock.hpp"

namespace trainyard::cache {

// HeldPin is a pin that is released on destruction.
class HeldPin {
 public:
  HeldPin(std::string path, os::SharedLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  HeldPin(const HeldPin&) = delete;
  ~HeldPin();

  uint64_t bytes_wanted = 0, bytes_pinned = 0;
  uint64_t bytes_of_others = 0;  // the sum of all other pins, without blocks shared with this one
  uint64_t bytes_max = 0;        // the limit of all pins together

 private:
  const std::string path_;
  const os::SharedLock lock_;
};

struct FoundPin {
  Pin pin;
  bool held = false;  // by a process
};

class Pins {
 public:
  Pins(std::string directory, uint64_t bytes_max, const os::Disk& disk)
      : directory_(std::move(directory)), bytes_max_(bytes_max), disk_(disk) {}

  // Pins as many of the first blocks as fit, at most `own_bytes_max` bytes. `wanted` may be in any
  // order.
  Result<std::unique_ptr<HeldPin>> hold(const std::string& name, std::vector<PinnedBlock> wanted,
                                        uint64_t own_bytes_max);
  // Replaces the kept pin of the same name.
  Result<void> keep(Pin pin);
  // Returns false if no kept pin has this name.
  Result<bool> remove(const std::string& name);
  // Reads all pins, and removes those whose holders have ended.
  Result<std::vector<FoundPin>> read();
  uint64_t bytes_max() const { return bytes_max_; }

 private:
  std::string path_of_kept(const std::string& name) const;

  const std::string directory_;
  const uint64_t bytes_max_;
  const os::Disk& disk_;
};

// Returns all blocks of the pins, ordered by hash, each once.
std::vector<PinnedBlock> all_blocks(const std::vector<FoundPin>& pins);
uint64_t bytes_of(const std::vector<PinnedBlock>& blocks);
bool contains(const std::vector<PinnedBlock>& ordered, const Digest& hash);

}  // namespace trainyard::cache
