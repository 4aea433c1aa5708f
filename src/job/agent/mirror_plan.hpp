// What is to be done so that the object store holds what a directory holds: decided from how the directory
// looked before, how it looks now and what was brought over.
//
//   - A file is brought over when it rests: two looks in a row found the same stamp, or its last change is
//     younger than its last write, as after a rename into place. One that is being written waits, so half a
//     checkpoint does not take the place of a whole one. At the last look nothing writes any more, and
//     everything that differs is brought over.
//   - Files go in the order of their last change: who writes the parts first and what names them last finds
//     in the store, after any crash, only names of parts that are there.
//   - What two looks did not find goes there too: a file that is deleted and written anew keeps its old form
//     in the store until the new one is whole. It goes after the uploads, but before them where it stands in
//     the way (a file "a" and a file "a/b" cannot be restored side by side).
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::agent {

// Names that belong to the platform: beside FILE lies FILE.sagemaker-uploading while it is to be brought over
// and FILE.sagemaker-uploaded once it was. Programs delete old checkpoints by them, and write what is not to
// be brought over as NAME.sagemaker-ignore.
inline constexpr std::string_view kUploadingMark = ".sagemaker-uploading";
inline constexpr std::string_view kUploadedMark = ".sagemaker-uploaded";
inline constexpr std::string_view kIgnoreMark = ".sagemaker-ignore";

// Whether the path, or a directory on it, has one of these names.
bool is_left_out(std::string_view path);

// What tells a file's contents from its earlier ones, without reading them. Times are nanoseconds since 1970;
// `changed` is the kernel's own and cannot be set by a program.
struct Stamp {
  uint64_t inode = 0;
  uint64_t bytes = 0;
  int64_t modified = 0;
  int64_t changed = 0;
  bool operator==(const Stamp&) const = default;
};

// One look at a directory.
struct Look {
  std::map<std::string, Stamp> files;  // path -> stamp; none is left out by name
  bool whole = true;                   // false: there was more than could be seen; what lacks may be there
};

struct MirrorPlan {
  std::vector<std::string> remove_first;  // from the store
  std::vector<std::string> upload;
  std::vector<std::string> remove;  // from the store
  size_t waiting = 0;               // files that do not rest yet
  bool empty() const { return remove_first.empty() && upload.empty() && remove.empty(); }
};

// `stored`: path -> the stamp that the file had when it was brought over. `last`: nothing writes any more.
MirrorPlan plan_mirror(const Look& before, const Look& now, const std::map<std::string, Stamp>& stored,
                       bool deletions, bool last);

}  // namespace trainyard::agent
