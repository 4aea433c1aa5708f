// Looks and works below a directory whose content a job may write, and never leaves it: the job may put links, FIFOs,
// devices and mounts wherever we look, at any time. The directory is held by a descriptor that was opened before the job
// ran, the root of a mount of its own where this process may make one (os/beneath.hpp says how paths are resolved).
//
// Threads: const calls from any. Errors: those of files; invalid: a path leads through a link or onto another mount, or
// something else is where a regular file or a directory is asked for.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/beneath.hpp"
#include "os/files.hpp"

namespace trainyard::agent {

// Deeper trees are cut there: no real model is, and every level holds a descriptor.
inline constexpr int kTreeDepthMax = 128;

class Tree {
 public:
  // Requires: no job can replace `directory` itself or what lies above it: it is what a mount of the job's container
  // shows, or no job runs yet.
  static Result<Tree> open(const std::string& directory);
  // A directory of this tree as one of its own; "" = the same directory. The job may have replaced it by a directory of
  // its own: that is then meant.
  Result<Tree> below(const std::string& directory) const;
  // The same; those that are missing are made, with `mode` less the umask.
  Result<Tree> make(const std::string& directory, unsigned mode = 0755) const;

  // What walk() met. `path` is relative to where the walk began.
  struct Entry {
    std::string path;
    struct stat status {};
    std::string link_target;  // of symbolic links
    bool too_deep = false;    // a directory that is not entered
  };
  // Visits all below `directory` ("" = the root itself), parents before children, names in order. A directory
  // that is absent or not one, or on which something is mounted, is empty. Stops at the visitor's first error.
  using Visitor = std::function<Result<void>(const Entry& entry)>;
  Result<void> walk(const std::string& directory, const Visitor& visitor) const;
  bool has_files(const std::string& directory) const;

  // A regular file, for reading.
  Result<os::File> open_file(const std::string& path) const;
  // A regular file, for writing. Its directory must be there.
  Result<os::File> create_file(const std::string& path, os::IfThere if_there, unsigned mode = 0644) const;
  // Makes or overwrites a file.
  Result<void> write(const std::string& path, std::string_view bytes) const;
  // A symbolic link takes the place of what has that name, unless that is a directory.
  Result<void> make_link(const std::string& path, const std::string& target) const;
  // Sets the mode of a directory, whatever the umask.
  Result<void> set_mode(const std::string& directory, unsigned mode) const;
  // What may still be written to its file system.
  Result<uint64_t> free_bytes() const;
  // An empty file of that name; harmless when there is something. Its directory must be there.
  Result<void> touch(const std::string& path) const;
  // What has that name goes, unless it is a directory. Harmless when absent.
  Result<void> remove(const std::string& path) const;
  // Its first bytes. "" when there is no such file.
  std::string read_start(const std::string& path, size_t bytes_max) const;

 private:
  explicit Tree(os::File root) : root_(std::move(root)) {}
  Result<os::File> open_parent(const std::string& path) const;
  os::File root_;
};

}  // namespace trainyard::agent
