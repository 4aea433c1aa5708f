// Decides how the objects of a channel in File mode reach a host: copied before the script
// starts, or mounted with a writable layer and fetched as they are read.
//
// File mode guarantees that bytes, once on the host, are there for the whole job. A channel is
// therefore mounted only where a cache keeps all its blocks until the job ends: the cache of the
// machine, which other jobs share, or else one on the job's own volume, which takes the space that
// a copy would take.
//
// Threads: pure. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trainyard::agent {

// A channel of at most these is copied: a mount would fetch as much for its first read, and is
// made no faster than some objects are fetched.
inline constexpr uint64_t kCopiedBytesMax = 4 << 20;  // a block of the cache
inline constexpr size_t kCopiedObjectsMax = 16;       // two for each thread that fetches

// True if so small a channel is copied in any case.
constexpr bool is_small(size_t objects, uint64_t bytes) {
  return objects <= kCopiedObjectsMax && bytes <= kCopiedBytesMax;
}

struct FileModeFacts {
  bool copies_wanted = false;     // by the config
  bool holds_sources = false;     // the agent itself reads the archive of sources in it
  std::string why_no_mount = {};  // why this host cannot mount; "": it can
};

// How a channel is brought, before its objects are known.
struct FileModeChoice {
  bool mounts = false;
  std::string note = {};  // for the job's log: why it is copied though mounts are wanted
};
FileModeChoice choose_file_mode(const FileModeFacts& facts);

enum class BlocksKept { on_machine, on_volume, nowhere };
// `needed`: bytes of all its blocks on disk; `pinned`: those that the machine's cache pins for this
// job; `volume_free`: what the job's volume has left for blocks.
BlocksKept choose_cache(uint64_t needed, uint64_t pinned, uint64_t volume_free);

}  // namespace trainyard::agent
