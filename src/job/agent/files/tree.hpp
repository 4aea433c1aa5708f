// Reads and writes below a directory whose content a job may change, and never leaves it: the job
// may put links, FIFOs, devices and mounts anywhere, at any time. The directory is held by a
// descriptor that was opened before the job ran, the root of a mount of its own where this process
// may make one (os/beneath.hpp describes how paths are resolved).
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

// Deeper trees are cut here: no real model is deeper, and every level holds a descriptor.
inline constexpr int kTreeDepthMax = 128;

// Names that one walk reads, which it sorts in memory: five times as many as are synced
// (checkpoint_sync.hpp). Names cost a job next to nothing.
inline constexpr size_t kWalkedNamesMax = 1'000'000;

class Tree {
 public:
  // Requires: no job can replace `directory` itself or its parents: it is the source of a mount of
  // the job's container, or no job runs yet.
  static Result<Tree> open(const std::string& directory);
  // Opens a directory of this tree as a tree of its own; "" = the same directory. If the job has
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
  // Visits all below `directory` ("" = the root itself), parents before children, names in order. A
  // directory that is absent, not a directory, or a mount point counts as empty. Stops at its first
  // error. Errors also: exhausted: there are more than `names_max` names.
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
  // Makes a symbolic link in place of what has that name, unless that is a directory.
  Result<void> make_link(const std::string& path, const std::string& target) const;
  // Sets the mode of a directory, independent of the umask.
  Result<void> set_mode(const std::string& directory, unsigned mode) const;
  // The bytes that may still be written to its file system.
  Result<uint64_t> free_bytes() const;
  // Makes an empty file of that name; harmless when it exists. Its directory must exist.
  Result<void> touch(const std::string& path) const;
  // Removes a name, unless it is a directory. Harmless when absent.
  Result<void> remove(const std::string& path) const;
  // Returns its first bytes, "" when there is no such file.
  std::string read_start(const std::string& path, size_t bytes_max) const;

 private:
  explicit Tree(os::File root) : root_(std::move(root)) {}
  Result<os::File> open_parent(const std::string& path) const;
  os::File root_;
};

}  // namespace trainyard::agent
