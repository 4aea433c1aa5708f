// Plans the copying of a directory to the object store, from the previous scan, the current scan
// and the files that were copied.
//
//   - A file is copied when it is stable: two consecutive scans found the same stamp, or its last
//     change is newer than its last write, as after a rename. A file that is being written waits,
//     so half a checkpoint does not replace a complete one. At the last scan all writers have
//     ended, and every difference is copied.
//   - An event file of TensorBoard does not wait, if the rules say so: it is only appended to, and
//     its readers expect that its last record is incomplete.
//   - Files are copied in the order of their last change. If a program writes the parts first and
//     then the file that names them, an index in the store never names missing parts.
//   - Files that two scans did not find are deleted in the store. So a file that is deleted and
//     written again keeps its old content there until the new one is complete. Deletions follow the
//     uploads, except where names conflict (a file "a" and a file "a/b" cannot both be restored).
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::agent {

// The markers of SageMaker: next to FILE is FILE.sagemaker-uploading until FILE is copied, and
// FILE.sagemaker-uploaded afterwards. Programs use them to delete old checkpoints. A program names
// a file that must not be copied NAME.sagemaker-ignore.
inline constexpr std::string_view kUploadingMark = ".sagemaker-uploading";
inline constexpr std::string_view kUploadedMark = ".sagemaker-uploaded";
inline constexpr std::string_view kIgnoreMark = ".sagemaker-ignore";

// True if the path, or a directory of it, has one of these names.
bool is_left_out(std::string_view path);

// Identifies the content of a file without reading it. Times are nanoseconds since 1970; `changed`
// is set by the kernel only (ctime).
struct Stamp {
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified = 0;
  int64_t changed = 0;
  bool operator==(const Stamp&) const = default;
};

// One scan of a directory.
struct DirectoryScan {
  std::map<std::string, Stamp> files;  // by path; includes markers
  bool whole = true;                   // false: the scan was incomplete; missing files may exist
};

// Selects the differences that are copied.
struct SyncRules {
  bool deletions = true;     // deleted files are deleted in the store, too
  bool event_files = false;  // event files are copied while they grow
};

// True for the names by which TensorBoard finds its event files.
bool is_event_file(std::string_view path);

struct SyncPlan {
  std::vector<std::string> remove_first;  // in the store
  std::vector<std::string> upload;
  std::vector<std::string> remove;  // in the store
  size_t waiting = 0;               // files that are not yet stable
  bool empty() const { return remove_first.empty() && upload.empty() && remove.empty(); }
};

// `stored`: path -> the stamp of the file when it was copied. `last`: all writers have ended.
SyncPlan plan_sync(const DirectoryScan& before, const DirectoryScan& now,
                   const std::map<std::string, Stamp>& stored, const SyncRules& rules, bool last);

}  // namespace trainyard::agent
