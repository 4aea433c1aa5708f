// Shows a tree of names as a read-only FUSE file system, whose bytes come from a BlockSource as
// they are read.
//
// A reader that goes through a file in order is read ahead for, further with each block. The kernel
// keeps what was read: a mounted version never changes. Each read that fails has a line in the
// job's log that says why.
//
// Threads: made, and destroyed, by one; it answers the kernel on threads of its own, so its owner
// may use the mounted files. The mount ends with this object, or with its process: then readers get
// ENOTCONN.
// Errors: unavailable: FUSE cannot be used here.
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
  // Mounts at `directory`, which is made. `name` names the mount in the lines of the log.
  static Result<std::unique_ptr<ReadOnlyMount>> make(const std::string& directory,
                                                     const std::string& name, NameTree tree,
                                                     BlockSource& source, BlockSource::Say say,
                                                     MountModes modes = {});
  // Sets the owner of all files and directories: root, unless it is set before they are used.
  virtual void set_owner(uint32_t user_id, uint32_t group_id) = 0;
  virtual const NameTree& tree() const = 0;
  virtual ~ReadOnlyMount() = default;  // stops the source, and unmounts; reads that wait fail
};

}  // namespace trainyard::mount
