// Decides how a host gets the objects of a channel in File mode: copied before the script starts,
// or mounted with a writable layer and fetched as they are read.
//
// File mode guarantees that bytes that are on the host stay there for the whole job. Therefore a
// channel is mounted only if a cache keeps all its blocks until the job ends: the machine's cache,
// which other jobs share, or else a cache on the job's volume, which needs the space that a copy
// would need.
//
// Threads: pure. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trainyard::agent {

// A channel within these limits is copied: a mount would fetch as much for its first read, and
// mounting takes as long as fetching some objects.
inline constexpr uint64_t kCopiedBytesMax = 4 << 20;  // a block of the cache
inline constexpr size_t kCopiedObjectsMax = 16;       // two for each thread that fetches

// True if the channel is small enough to be copied in any case.
constexpr bool is_small(size_t objects, uint64_t bytes) {
  return objects <= kCopiedObjectsMax && bytes <= kCopiedBytesMax;
}

struct FileModeFacts {
  bool copies_wanted = false;     // by the config
  bool holds_sources = false;     // it has the archive of sources, which the agent itself reads
  std::string why_no_mount = {};  // why this host cannot mount; "" = it can
};

// The decision for a channel before its objects are known.
struct FileModeChoice {
  bool mounts = false;
  std::string note = {};  // for the job's log: why it is copied although mounts are configured
};
FileModeChoice choose_file_mode(const FileModeFacts& facts);

enum class BlocksKept { on_machine, on_volume, nowhere };
// `needed`: the bytes of all blocks of the channel on disk; `pinned`: the bytes that the machine's
// cache has pinned for this job; `volume_free`: the free bytes of the job's volume for blocks.
BlocksKept choose_cache(uint64_t needed, uint64_t pinned, uint64_t volume_free);

}  // namespace trainyard::agent
