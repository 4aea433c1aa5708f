// A shared file system that jobs name by id: a directory of every machine, from the config.
//
// Threads: plain values. Errors: not_found, invalid, in words for who asked.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

struct FileSystem {
  std::string directory;  // absolute
  std::string type;       // "EFS", "FSxLustre"; "" = either
  std::string
      mount_name;  // what paths of FSxLustre may begin with: "/fsx/data" is "data" where this is "fsx"
  bool read_only = false;
};
using FileSystems = std::map<std::string, FileSystem>;  // by id: "fs-0123456789abcdef0"

// What a channel may have: `asked` with its path relative to the file system's root, without slashes at its
// ends; "" is the root. Errors: not_found: no such id; invalid: another type, a path that leaves the root,
// writing to what is read-only.
Result<FileSystemSource> resolve_source(const FileSystems& file_systems, FileSystemSource asked);

}  // namespace trainyard::domain
