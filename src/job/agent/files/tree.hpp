// Reads and writes files below a directory that a job may change, and never leaves the directory:
// the job may make links, FIFOs, devices and mounts anywhere, at any time. The directory is open
// since before the job ran, as the root of a mount of its own where this process may make one
// (os/beneath.hpp describes how paths are resolved).
//
// Threads: const calls from any. Errors: those of files; invalid: a path leads through a link or
// onto another mount, or is not the regular file or directory that the caller requires.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/beneath.hpp"
#include "os/files.hpp"

namespace trainyard::agent {

// The limit of depth: no real model is deeper, and every level needs a descriptor. Deeper
// directories are not entered.
inline constexpr int kTreeDepthMax = 128;

// The limit of names that one walk reads and sorts in memory: five times as many as are synced
// (checkpoint_sync.hpp). A job can make names at almost no cost.
inline constexpr size_t kWalkedNamesMax = 1'000'000;

class Tree {
 public:
  // Requires: no job can replace `directory` or its parents, as it is the source of a mount in the
  // job's container, or no job runs yet.
  static Result<Tree> open(const std::string& directory);
  // Opens a directory of this tree as a separate tree; "" = the same directory. If the job has
  // replaced it by another directory, that one is opened.
  Result<Tree> below(const std::string& directory) const;
  // Likewise; makes missing directories, with `mode` less the umask.
  Result<Tree> make(const std::string& directory, unsigned mode = 0755) const;

  // An entry of walk(). `path` is relative to the start.
  struct Entry {
    std::string path;
    struct stat status {};
    std::string link_target;  // of symbolic links
    bool too_deep = false;    // a directory that is not entered
  };
  // Visits all entries below `directory` ("" = the root), parents before children, names in order.
  // A `directory` that is absent, a mount point or another file type counts as empty. Stops at the
  // first error. Errors also: exhausted: there are more than `names_max` names.
  using Visitor = std::function<Result<void>(const Entry& entry)>;
  Result<void> walk(const std::string& directory, const Visitor& visitor,
                    size_t names_max = kWalkedNamesMax) const;
  // True also if there are too many names for a walk.
  bool has_files(const std::string& directory) const;

  // Opens a regular file, for reading.
  Result<os::File> open_file(const std::string& path) const;
  // Opens a regular file, for writing. Its directory must exist.
  Result<os::File> create_file(const std::string& path, os::IfThere if_there,
                               unsigned mode = 0644) const;
  // Makes or overwrites a file.
  Result<void> write(const std::string& path, std::string_view bytes) const;
  // Makes a symbolic link. Replaces an existing entry, unless it is a directory.
  Result<void> make_link(const std::string& path, const std::string& target) const;
  // Sets the mode of a directory, independent of the umask.
  Result<void> set_mode(const std::string& directory, unsigned mode) const;
  // Returns the free bytes of its file system.
  Result<uint64_t> free_bytes() const;
  // Makes an empty file; no effect when it exists. Its directory must exist.
  Result<void> touch(const std::string& path) const;
  // Removes an entry, unless it is a directory. No effect when it is absent.
  Result<void> remove(const std::string& path) const;
  // Returns the first bytes of a file; "" when there is no such file.
  std::string read_start(const std::string& path, size_t bytes_max) const;

 private:
  explicit Tree(os::File root) : root_(std::move(root)) {}
  Result<os::File> open_parent(const std::string& path) const;
  os::File root_;
};

}  // namespace trainyard::agent
