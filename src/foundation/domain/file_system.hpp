// A FileSystem is a shared file system that jobs select by its id. It is a directory that every
// machine has, defined in the config or created by a request.
//
// Threads: plain values. Errors: not_found, invalid, denied, with a message for the user.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "domain/job.hpp"

namespace trainyard::domain {

struct FileSystem {
  std::string directory;  // absolute
  std::string type;       // "EFS", "FSxLustre"; "": either
  // A prefix that paths of FSxLustre may have: if it is "fsx", "/fsx/data" is the directory "data".
  std::string mount_name;
  bool read_only = false;
  // The state because of which jobs cannot use it, such as "creating"; "": jobs can use it.
  std::string not_available = {};
  // The principals that may use it: users by name, roles by name or ARN (role.hpp). If both are
  // empty, all principals may use it.
  std::vector<std::string> users, roles;
};
using FileSystems = std::map<std::string, FileSystem>;  // by id: "fs-0123456789abcdef0"

// Checks a requested source and returns it with its path relative to the file system's root,
// without slashes at its ends; "" is the root. Errors: not_found (unknown id); invalid (another
// type, a path that leaves the root, or write access to a read-only file system).
Result<FileSystemSource> resolve_source(const FileSystems& file_systems,
                                        FileSystemSource requested);

// The principals on whose behalf a job uses shared directories.
struct Requester {
  std::string user;  // the user that signed the request; "": a role signed it
  // ARNs of the roles of the requesting session and of the job; "" entries are ignored
  std::vector<std::string> roles;
};
// Returns true if the lists of the file system allow the requester to use it.
bool may_use(const FileSystem& file_system, const Requester& requester);
// Checks that the requester may use every shared directory of the job's channels and volumes.
// Errors: denied, with the first directory that it may not use. Directories that are not in the
// tables are ignored here; other checks reject them.
Result<void> check_shared_directories(const FileSystems& file_systems, const FileSystems& volumes,
                                      const JobSpec& spec, const Requester& requester);

// The user and group under which a job accesses shared directories. It is never root.
struct PosixUser {
  uint32_t user_id = 65534, group_id = 65534;  // the overflow user, which should own no file
  bool operator==(const PosixUser&) const = default;
};
// By the name of the user that created the job; "*": all other users.
using PosixUsers = std::map<std::string, PosixUser>;
// Parses "UID:GID". Errors: invalid (another form, or a number that is not between 1 and
// 4294967294).
Result<PosixUser> parse_posix_user(std::string_view text);
// Returns the entry of the user `name`, or of "*", or the default.
PosixUser posix_user_of(const PosixUsers& users, const std::string& name);

}  // namespace trainyard::domain
