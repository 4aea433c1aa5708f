// Looks and works below a directory that a user's process could write, and never leaves it: that process may
// have put links, pipes and devices wherever we look.
//
// Threads: confined to one. Errors: those of files; a link or a special file where a regular one is asked for
// is invalid.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "host/files.hpp"

namespace trainyard::agent {

// Deeper trees are cut there: no real model is, and every level holds a descriptor.
inline constexpr int kTreeDepthMax = 128;

class Tree {
 public:
  static Result<Tree> open(const std::string& directory);

  // What walk() met. `path` is relative to where the walk began.
  struct Entry {
    std::string path;
    struct stat status {};
    std::string link_target;  // of symbolic links
    bool too_deep = false;    // a directory that is not entered
  };
  // Visits all below `directory` ("" = the root itself), parents before children, names in order. A directory
  // that is absent or not one is empty. Stops at the visitor's first error.
  using Visitor = std::function<Result<void>(const Entry& entry)>;
  Result<void> walk(const std::string& directory, const Visitor& visitor) const;
  bool has_files(const std::string& directory) const;

  // A regular file, for reading.
  Result<host::File> open_file(const std::string& path) const;
  // An empty file of that name; harmless when there is something. Its directory must be there.
  Result<void> touch(const std::string& path) const;
  // What has that name goes, unless it is a directory. Harmless when absent.
  Result<void> remove(const std::string& path) const;
  // Its first bytes. "" when there is no such file.
  std::string read_start(const std::string& path, size_t bytes_max) const;

 private:
  explicit Tree(host::File root) : root_(std::move(root)) {}
  Result<host::File> open_parent(const std::string& path) const;
  host::File root_;
};

}  // namespace trainyard::agent
