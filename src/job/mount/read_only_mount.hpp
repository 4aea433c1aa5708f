// Mounts a tree of names as a read-only FUSE file system. The content of a file is fetched from a
// BlockSource when it is read.
//
// While a file is read sequentially, the next blocks are fetched in advance: one at first, and up
// to four. The kernel caches what was read, since a mounted version never changes. Reads that fail
// are reported in the job's log with the reason; equal lines are printed once, and the number of
// lines is limited.
//
// Threads: made and destroyed by one thread; set_owner() and tree() are callable from anywhere. It
// serves the kernel's requests on its own threads, so its owner may use the mounted files. The
// mount ends with this object or its process; then readers get ENOTCONN.
// Errors: unavailable, if FUSE cannot be used here; those of making the directory.
// Lifetime: the source outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "mount/block_source.hpp"
#include "mount/name_tree.hpp"

namespace trainyard::mount {

// Permission bits of a mount's files and directories.
struct MountModes {
  unsigned file = 0444, directory = 0555;
};

class ReadOnlyMount {
 public:
  // Makes `directory` and mounts there. `name`: the name of the mount in the job's log. `say`:
  // prints a line to that log.
  static Result<std::unique_ptr<ReadOnlyMount>> make(const std::string& directory,
                                                     const std::string& name, NameTree tree,
                                                     BlockSource& source, BlockSource::Say say,
                                                     MountModes modes = {});
  // Sets the owner of all files and directories: root, unless it is set before they are used.
  virtual void set_owner(uint32_t user_id, uint32_t group_id) = 0;
  virtual const NameTree& tree() const = 0;
  virtual ~ReadOnlyMount() = default;  // stops the source and unmounts; waiting reads fail
};

}  // namespace trainyard::mount
