// Checks requests for file systems, associations and tasks: the sizes and throughput of each
// deployment type, paths, and conflicts with existing resources.
//
// Threads: pure functions.
// Errors:  invalid, not_found, conflict, exhausted; each with a Fault, by which the API layer
//          selects the error's name.
#pragma once

#include <string>
#include <vector>

#include "file_systems/record.hpp"
#include "objects/objects.hpp"

namespace trainyard::file_systems {

enum class Fault {
  bad_request,
  incompatible_parameter,
  invalid_import_path,
  invalid_export_path,
  invalid_throughput,
  unsupported,
  limit_exceeded,
  file_system_missing,
  association_missing,
  task_missing,
  task_executing,
  task_ended,
};

// Limits of one region, as AWS's default quotas.
inline constexpr size_t kFileSystemsMax = 100;
inline constexpr size_t kAssociationsOfFileSystemMax = 8;
inline constexpr size_t kTasksKeptMax = 1'000;  // of a region; then the oldest ended are dropped
inline constexpr size_t kTaskPathsMax = 32;
inline constexpr int64_t kCapacityGibMax = 2'147'483'647;  // as in the model

// Checks capacity, storage type, throughput and cache of a new file system.
Result<void> check_size(const LustreFileSystem& requested);
// Checks the S3 paths of a new file system. Returns its export path: the requested one, or the
// default if it has only an import path.
Result<std::string> check_paths(const LustreFileSystem& requested);
// Checks that the capacity may be changed to `gib`.
Result<void> check_growth(const LustreFileSystem& present, int64_t gib);

// Parses "s3://bucket/prefix". The prefix of the result is empty or ends with a slash.
Result<objects::Location> parse_repository(std::string_view path);
// Parses a directory of the file system: "/a/b/" -> "a/b". Rejects "..", "." and NUL.
Result<std::string> parse_directory(std::string_view path);
// Returns true if one of the two directories contains the other, or they are equal.
bool overlap(std::string_view a, std::string_view b);
bool contains(std::string_view directory, std::string_view path);

Result<const LustreFileSystem*> find_file_system(const Snapshot& snapshot,
                                                 const std::string& region, const std::string& id);
// Checks a new association against the file system and its other associations.
Result<void> check_association(const Snapshot& snapshot, const std::string& region,
                               const Association& requested);
// Checks a new task against the file system and its other tasks.
Result<void> check_task(const Snapshot& snapshot, const std::string& region,
                        const RepositoryTask& requested);
// Checks that a file system may be deleted. `jobs`: the number of jobs that use it.
Result<void> check_deletion(const Snapshot& snapshot, const std::string& region,
                            const std::string& id, size_t jobs);
// Removes the oldest ended tasks beyond the limit of a region.
void drop_old_tasks(Snapshot& snapshot, const std::string& region);

// A linked prefix of S3, and the directory that it belongs to.
struct Link {
  std::string path;  // a directory of the file system; "": its root
  objects::Location repository;
};
// Returns the links from which a task imports, or to which it exports, the longest directory first.
std::vector<Link> links_of(const Snapshot& snapshot, const std::string& file_system_key,
                           TaskKind kind);

}  // namespace trainyard::file_systems
