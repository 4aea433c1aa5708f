// Stores objects in a directory of the machine: the disk of the embedded S3.
//
// Durability: a put is written to a file in temporary/, synced, and renamed to the path of its key;
// the directories of the path are synced before commit() returns. A crash in between leaves a file
// in temporary/, which the next opening removes. After a failed sync all changes fail with
// `unavailable` until the directory is opened again.
//
// Reads: a reader has the file open, so it can read to the end an object that is replaced or
// removed meanwhile. A read of a whole object is compared with its checksum.
//
// An object that was uploaded in parts is a list of their files: completing the upload copies
// nothing. Usage is counted by bucket and owner (storage_use.hpp), from the files when the
// directory is opened. Only the names of buckets are kept in memory: the path of a key is computed
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
  // Called before each put and each part, and after each kSpaceCheckBytes of its bytes. Its error
  // fails the put.
  CheckDiskSpace check_disk_space = no_reserve();
  FindStorageQuotas quotas = nullptr;  // called before each write; unset: no quotas
  FileFaults* faults = nullptr;        // for tests; must outlive the objects
};
inline constexpr uint64_t kSpaceCheckBytes = 16 << 20;  // bytes that a put may go below the reserve

Result<std::unique_ptr<Objects>> open_directory(const std::string& path, Clock& clock,
                                                Random& random,
                                                const DirectorySettings& settings = {});

}  // namespace trainyard::objects
