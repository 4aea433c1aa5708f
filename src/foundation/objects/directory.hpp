// Stores objects in a directory of the machine: the disk of the embedded S3.
//
// Durable: a put is written to a file in temporary/, synced, and renamed to its place, and the
// directories of its path are synced before commit() returns. A crash in the middle leaves a file
// in temporary/, which the next opening removes. Readers hold the file they opened, so they keep
// reading an object that is replaced or removed. An object that was uploaded in parts is a list of
// their files: completing the upload copies nothing. Usage is counted by bucket and owner
// (storage_use.hpp), from the files when the directory is opened. A read of a whole object is
// compared with its checksum. After a failed sync all changes fail with `unavailable` until the
// directory is opened again. Only the buckets' names are kept in memory: a key's path is computed
// from the key, and a listing walks the tree.
//
// Layout and file format: docs/formats/objects.md.
#pragma once

#include <memory>
#include <string>

#include "base/disk_reserve.hpp"
#include "base/file_faults.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "objects/objects.hpp"
#include "objects/storage_use.hpp"

namespace trainyard::objects {

// Opens a directory, made when absent. It is locked while open: one process at a time. Errors:
// conflict (another process has it open), invalid (written by a newer version), and those of files.
struct DirectorySettings {
  // Called before each put and part, and after each kSpaceCheckBytes of one; its error ends the
  // put.
  CheckDiskSpace check_disk_space = no_reserve();
  FindStorageQuotas quotas = nullptr;  // unset: none. Called before each write
  FileFaults* faults = nullptr;        // for tests; outlives the objects
};
inline constexpr uint64_t kSpaceCheckBytes = 16 << 20;  // bytes that a put may go below the reserve

Result<std::unique_ptr<Objects>> open_directory(const std::string& path, Clock& clock,
                                                Random& random,
                                                const DirectorySettings& settings = {});

}  // namespace trainyard::objects
