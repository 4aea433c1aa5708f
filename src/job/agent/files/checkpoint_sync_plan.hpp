// Plans the copying of a directory to the object store,
// from its previous scan, its current scan and the copied
// files.
//
//   - A file is copied when it is at rest: two consecutive scans found the same stamp, or its last
//     change is newer than its last write, as after a rename. A file that is being written waits,
//     so half a checkpoint does not replace a whole one. At the last scan all writers have ended,
//     and every difference is copied.
//   - An event file of TensorBoard does not wait, if the rules say so: it is only appended to, and
//     its readers expect that its last record is incomplete.
//   - Files are copied in the order of their last change: if a program writes the parts first and
//     the file that names them last, then after any crash the store has only names of parts that
//     are there.
//   - Files that two scans did not find are deleted in the store: a file that is deleted and
//     written again keeps its old content there until the new one is complete. Deletions follow the
//     uploads, except where a name is in the way (a file "a" and a file "a/b" cannot both be
//     restored).
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::agent {

// Names that belong to the platform: next to FILE there is FILE.sagemaker-uploading until it is
// copied, and FILE.sagemaker-uploaded afterwards. Programs delete old checkpoints by them, and name
// files that are not to be copied NAME.sagemaker-ignore.
inline constexpr std::string_view kUploadingMark = ".sagemaker-uploading";
inline constexpr std::string_view kUploadedMark = ".sagemaker-uploaded";
inline constexpr std::string_view kIgnoreMark = ".sagemaker-ignore";

// True if the path, or a directory of it, has one of these names.
bool is_left_out(std::string_view path);

// Distinguishes a file's content from earlier ones, without reading it. Times are nanoseconds since
// 1970; `changed` is the kernel's own and cannot be set by a program.
struct Stamp {
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified = 0;
  int64_t changed = 0;
  bool operator==(const Stamp&) const = default;
};

// One scan of a directory.
struct Look {
  std::map<std::string, Stamp> files;  // path -> stamp; includes the platform's names
  bool whole = true;                   // false: the scan was incomplete; missing files may exist
};

// SyncRules say which differences are copied.
struct SyncRules {
  bool deletions = true;     // files deleted here are deleted there
  bool event_files = false;  // those that grow are copied as they are
};

// True for the names by which TensorBoard finds its event files.
bool is_event_file(std::string_view path);

struct SyncPlan {
  std::vector<std::string> remove_first;  // in the store
  std::vector<std::string> upload;
  std::vector<std::string> remove;  // in the store
  size_t waiting = 0;               // files that are not yet at rest
  bool empty() const { return remove_first.empty() && upload.empty() && remove.empty(); }
};

// `stored`: path -> the stamp of the file when it was copied. `last`: all writers have ended.
SyncPlan plan_sync(const Look& before, const Look& now, const std::map<std::string, Stamp>& stored,
                   const SyncRules& rules, bool last);

}  // namespace trainyard::agent
