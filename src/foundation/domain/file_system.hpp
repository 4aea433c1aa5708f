// A shared file system that jobs name by id: a directory of every machine, from the config.
//
// Threads: plain values. Errors: not_found, invalid, in words for who asked.
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
  std::string type;       // "EFS", "FSxLustre"; "" = either
  std::string
      mount_name;  // what paths of FSxLustre may begin with: "/fsx/data" is "data" where this is "fsx"
  bool read_only = false;
  // Who may name it: users by name, roles by name or ARN. Both empty: everyone.
  std::vector<std::string> users, roles;
};
using FileSystems = std::map<std::string, FileSystem>;  // by id: "fs-0123456789abcdef0"

// What a channel may have: `asked` with its path relative to the file system's root, without slashes at its
// ends; "" is the root. Errors: not_found: no such id; invalid: another type, a path that leaves the root,
// writing to what is read-only.
Result<FileSystemSource> resolve_source(const FileSystems& file_systems, FileSystemSource asked);

// A principal that names a shared directory for a job, or the job itself.
struct Requester {
  std::string user;                // of a user's keys; "" for a role's
  std::vector<std::string> roles;  // ARNs: of the requesting session, of the job; "" entries say nothing
};
// Whether the file system's lists let that principal name it.
bool may_name(const FileSystem& file_system, const Requester& requester);
// Every shared directory that a job names, of channels and of volumes, against the lists. Errors: denied, naming the
// first that it may not use. One that is not in the tables is left to others to refuse.
Result<void> check_shared_directories(const FileSystems& file_systems, const FileSystems& volumes,
                                      const JobSpec& spec, const Requester& requester);

// The user and group of the machines as whom a job reads and writes shared directories: never root.
struct PosixUser {
  uint32_t user_id = 65534, group_id = 65534;  // the overflow user, which should own no file
  bool operator==(const PosixUser&) const = default;
};
// By the name of the user who asked for the job; "*" is all others.
using PosixUsers = std::map<std::string, PosixUser>;
// Errors: invalid, when text is not "UID:GID", both between 1 and 4294967294.
Result<PosixUser> parse_posix_user(std::string_view text);
PosixUser posix_user_of(const PosixUsers& users, const std::string& name);

}  // namespace trainyard::domain
