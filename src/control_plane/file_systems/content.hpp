// A Content is the directory of one file system: `files`, which jobs see, and `work`, in which
// files are written before they are renamed into place.
//
// Jobs may write to `files` at any time, so every path in it is opened beneath an open descriptor,
// without following links. Files appear whole: until they are complete, they are in `work`.
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

// Returns the directory of the file system that jobs mount.
std::string files_directory(const std::string& root, const std::string& id);

// The last exchange of a file with S3, if the file has not changed since, by a mark that Content
// stores in an extended attribute. Jobs can forge the mark of a file that they may write; then that
// file is not exported over an object. unknown: it has changed, or the disk has no extended
// attributes.
enum class LastExchange { unknown, imported, exported };

// An open file that is exported.
struct OpenFile {
  os::File file;
  FileFacts facts;
  uint32_t mode = 0, user = 0, group = 0;
  int64_t modified_ns = 0;
  LastExchange unchanged_since = LastExchange::unknown;
};

// Limits the memory for names and paths of one list, which suffices for some six million ordinary
// files. Jobs choose names, and empty files need no space on the disk.
inline constexpr size_t kListedBytesMax = size_t{1} << 30;

// Limits a walk through the files of jobs.
struct WalkLimits {
  size_t bytes_max = kListedBytesMax;  // names and paths, and some more for each entry
  std::function<bool()> cancelled = [] { return false; };
};

// Reads at most piece.size() bytes; 0 at the end.
Result<size_t> read_piece(const OpenFile& open, std::span<char> piece);

class Content {
 public:
  // Opens a file system, and creates its directories if they do not exist. `boot` identifies the
  // running kernel: if an import is `unfinished` and was begun before another boot, all files are
  // removed, since their content may not have reached the disk. `owner` becomes the owner of all
  // written files, if the server may change owners; jobs of other users can only read.
  static Result<Content> open(const std::string& root, const std::string& id,
                              const std::string& boot, bool unfinished, domain::PosixUser owner);

  // Lists the regular files below the directories and files `paths`, or all if it is empty. Reports
  // links, devices and too long paths to `skipped`. Errors also: cancelled; exhausted: beyond the
  // limit.
  Result<Files> list(const std::vector<std::string>& paths,
                     const std::function<void(FileFailure)>& skipped,
                     const WalkLimits& limits = {}) const;

  // Writes a file from the pieces that `next` returns, until one is empty, and sets its time.
  // Returns its size. Requires: `number` differs from the numbers of all other running calls.
  using NextPiece = std::function<Result<size_t>(std::span<char>)>;
  Result<uint64_t> write(const std::string& path, Instant modified, size_t number,
                         const NextPiece& next) const;
  Result<void> make_directory(const std::string& path) const;
  Result<OpenFile> read(const std::string& path) const;
  // Marks the content that was read from `path` as exported.
  void mark_exported(const std::string& path, const OpenFile& read) const;
  // Removes a regular file. Does nothing for other types.
  Result<void> remove(const std::string& path) const;
  // Removes the regular files below a directory, or the file `path`. Only the names of directories
  // count for the limit. Errors also: those of list().
  Result<void> remove_below(const std::string& path, const WalkLimits& limits = {}) const;
  // Makes all written files durable.
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

// Removes a file system's directory, if it exists.
Result<void> remove_content(const std::string& root, const std::string& id);

}  // namespace trainyard::file_systems
