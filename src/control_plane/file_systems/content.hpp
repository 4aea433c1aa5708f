// A Content is the directory of one file system: `files`, which jobs see, and `work`, in which
// files are written before they are renamed into place.
//
// Jobs may write to `files` at any time, so every path in it is opened beneath a held descriptor,
// and no link is followed. A file appears whole: until it is complete, it is in `work`.
//
// Threads: callable from many threads at once. Errors: by errno, with the path; exhausted: the disk
// is full; invalid: a link on the path, or another type of file.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "domain/file_system.hpp"
#include "file_systems/import_plan.hpp"
#include "os/files.hpp"

namespace trainyard::file_systems {

// The directory that jobs see of the file system.
std::string files_directory(const std::string& root, const std::string& id);

// The last exchange with S3 since which a file has not changed, by a mark that Content leaves on
// it. Jobs can forge the mark of a file that they may write: then that file is not exported over an
// object. unknown: it has changed, or the disk keeps no extended attributes.
enum class LastExchange { unknown, imported, exported };

// A file that is read to export it.
struct OpenFile {
  os::File file;
  FileFacts facts;
  uint32_t mode = 0, user = 0, group = 0;
  int64_t modified_ns = 0;
  LastExchange unchanged_since = LastExchange::unknown;
};

// The names and paths of one list, in memory: of some six million files with ordinary paths. Jobs
// choose both, and files without content need no space on the disk.
inline constexpr size_t kListedBytesMax = size_t{1} << 30;

// Bounds a walk through the files of jobs.
struct WalkLimits {
  size_t bytes_max = kListedBytesMax;  // names and paths, and some more for each entry
  std::function<bool()> cancelled = [] { return false; };
};

// Reads at most piece.size() bytes; 0 at the end.
Result<size_t> read_piece(const OpenFile& open, std::span<char> piece);

class Content {
 public:
  // Makes the directories of a file system that does not have them. `boot`: names the running
  // kernel; after another boot, files of an unfinished import are not trusted, and all are removed
  // if `unfinished`.
  // `owner`: of all that is written; a server that may change no owners keeps its own. Jobs that
  // are mapped to another user can read, and not write.
  static Result<Content> open(const std::string& root, const std::string& id,
                              const std::string& boot, bool unfinished, domain::PosixUser owner);

  // The regular files below the directories and files `paths`, or all. Links, devices and paths
  // that are too long are reported to `skipped`. Errors also: cancelled; exhausted: there are more
  // than the limit.
  Result<Files> list(const std::vector<std::string>& paths,
                     const std::function<void(FileFailure)>& skipped,
                     const WalkLimits& limits = {}) const;

  // Writes a file from the pieces that `next` returns, until one is empty, and gives it the time.
  // `number` differs from that of each other running call. Returns its size.
  using NextPiece = std::function<Result<size_t>(std::span<char>)>;
  Result<uint64_t> write(const std::string& path, Instant modified, size_t number,
                         const NextPiece& next) const;
  Result<void> make_directory(const std::string& path) const;
  Result<OpenFile> read(const std::string& path) const;
  // Marks the content that was read from `path` as exported.
  void mark_exported(const std::string& path, const OpenFile& read) const;
  // Removes a file, if it is one.
  Result<void> remove(const std::string& path) const;
  // Removes the regular files below a directory, or the file `path`. Only the names of directories
  // count for the limit. Errors also: those of list().
  Result<void> remove_below(const std::string& path, const WalkLimits& limits = {}) const;
  // Makes all that was written durable.
  Result<void> sync() const;

 private:
  Content(os::File directory, os::File files, os::File work, domain::PosixUser owner)
      : directory_(std::move(directory)),
        files_(std::move(files)),
        work_(std::move(work)),
        owner_(owner) {}
  os::File directory_, files_, work_;
  domain::PosixUser owner_;
};

// Removes a file system's directory; harmless when absent.
Result<void> remove_content(const std::string& root, const std::string& id);

}  // namespace trainyard::file_systems
