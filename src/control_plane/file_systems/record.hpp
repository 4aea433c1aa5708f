// A LustreFileSystem is a file system that an FSx request created: a directory that is filled from
// S3 and mounted by jobs. An Association links one of its directories to an S3 prefix; a
// RepositoryTask moves files between both once. Each is one record of the ledger, named REGION/ID.
//
// Life cycle of a file system:
//
//   creating --+--> available <--> (changed in place)
//              |        |
//              +--> failed
//              |        |
//              +--------+--> deleting --> (the record is removed)
//
// Threads: plain values and pure functions. Errors: invalid, naming the member.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/record.hpp"

namespace trainyard::file_systems {

using Tags = std::map<std::string, std::string>;

enum class Lifecycle { creating, available, failed, deleting };
inline constexpr EnumTable<Lifecycle> kLifecycles{"lifecycle",
                                                  {{Lifecycle::creating, "creating"},
                                                   {Lifecycle::available, "available"},
                                                   {Lifecycle::failed, "failed"},
                                                   {Lifecycle::deleting, "deleting"}}};

enum class Deployment { scratch_1, scratch_2, persistent_1, persistent_2 };
inline constexpr EnumTable<Deployment> kDeployments{"deployment type",
                                                    {{Deployment::scratch_1, "SCRATCH_1"},
                                                     {Deployment::scratch_2, "SCRATCH_2"},
                                                     {Deployment::persistent_1, "PERSISTENT_1"},
                                                     {Deployment::persistent_2, "PERSISTENT_2"}}};

enum class AutoImport { none, added, added_changed };
inline constexpr EnumTable<AutoImport> kAutoImports{"automatic import",
                                                    {{AutoImport::none, "NONE"},
                                                     {AutoImport::added, "NEW"},
                                                     {AutoImport::added_changed, "NEW_CHANGED"}}};

// Identifies the request that created a resource: a repeated request has the same token and digest.
struct RequestMark {
  std::string token, digest;
  bool operator==(const RequestMark&) const = default;
};

struct LustreFileSystem {
  std::string id;  // "fs-0123456789abcdef0"; not in the document
  std::string account;
  std::string creator;  // the name of the principal
  RequestMark mark;
  Instant created;
  Lifecycle lifecycle = Lifecycle::creating;
  std::string failure;  // why it failed; if it is available: which objects its import left out
  int64_t capacity_gib = 0;
  Deployment deployment = Deployment::scratch_1;
  std::string storage_type = "SSD";
  std::string mount_name;
  std::string type_version;
  int64_t throughput_per_tib = 0;        // MB/s; 0: the default of the deployment type
  std::string import_path, export_path;  // "s3://bucket/prefix"; "": none
  int64_t chunk_mib = 1024;
  AutoImport auto_import = AutoImport::none;
  // Stored and shown, without effect.
  std::string compression = "NONE", drive_cache, maintenance_time;
  std::vector<std::string> subnets, security_groups;
  Tags tags;
  bool operator==(const LustreFileSystem&) const = default;
};

struct Association {
  std::string id;  // "dra-0123456789abcdef0"; not in the document
  std::string file_system;
  RequestMark mark;
  Instant created;
  Lifecycle lifecycle = Lifecycle::creating;
  std::string failure;     // as LustreFileSystem::failure
  std::string path;        // its directory, without slashes at the ends; "": the root
  std::string repository;  // "s3://bucket/prefix"
  bool import_on_create = false;
  int64_t chunk_mib = 1024;
  AutoImport auto_import = AutoImport::none;
  bool delete_files = false;  // true: deleting it also deletes its files
  Tags tags;
  bool operator==(const Association&) const = default;
};

enum class TaskKind { export_files, import_files };
inline constexpr EnumTable<TaskKind> kTaskKinds{
    "type of task", {{TaskKind::export_files, "export"}, {TaskKind::import_files, "import"}}};

enum class TaskState { pending, executing, succeeded, failed, canceling, canceled };
inline constexpr EnumTable<TaskState> kTaskStates{"task state",
                                                  {{TaskState::pending, "pending"},
                                                   {TaskState::executing, "executing"},
                                                   {TaskState::succeeded, "succeeded"},
                                                   {TaskState::failed, "failed"},
                                                   {TaskState::canceling, "canceling"},
                                                   {TaskState::canceled, "canceled"}}};
constexpr bool is_over(TaskState state) {
  return state == TaskState::succeeded || state == TaskState::failed ||
         state == TaskState::canceled;
}

struct RepositoryTask {
  std::string id;  // "task-0123456789abcdef0"; not in the document
  std::string file_system;
  RequestMark mark;
  TaskKind kind = TaskKind::export_files;
  TaskState state = TaskState::pending;
  Instant created, updated;
  std::optional<Instant> started, ended;
  // Paths below the file system, without slashes at the ends; empty: all files.
  std::vector<std::string> paths;
  std::string report;  // "s3://bucket/prefix"; "": none
  std::string failure;
  int64_t total = 0, succeeded = 0, failed = 0;  // files
  Tags tags;
  bool operator==(const RepositoryTask&) const = default;
};

// All records of FSx, by "REGION/ID".
struct Snapshot {
  uint64_t version = 0;  // the version of the domain::Records that it was read from
  std::map<std::string, LustreFileSystem> file_systems;
  std::map<std::string, Association> associations;
  std::map<std::string, RepositoryTask> tasks;
};
std::string key_of(std::string_view region, std::string_view id);
std::string region_of(std::string_view key);

inline constexpr std::string_view kFileSystemRecord = "fsx_file_system",
                                  kAssociationRecord = "fsx_association", kTaskRecord = "fsx_task";

// Adds a record; ignores records of other kinds.
Result<void> add_record(Snapshot& snapshot, const domain::RecordKey& key, const Json& document);
// Returns the writes that change `before` into `after`.
std::vector<domain::RecordWrite> difference(const Snapshot& before, const Snapshot& after);

}  // namespace trainyard::file_systems
