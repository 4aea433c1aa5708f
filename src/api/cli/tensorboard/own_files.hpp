// OwnFiles downloads the files that a job has written for TensorBoard from the S3 location of its
// TensorBoardOutputConfig, where they are uploaded while it runs.
//
// If an event file has grown, only its new bytes are appended, since TensorBoard keeps it open; any
// other changed file is written again. Files that disappear in S3 stay. The job chooses the names,
// so they never lead out of the directory; files with unusable names are left out and reported
// once.
//
// Threads: confined to one. Errors: those of the store and of files; cancelled: `may_continue`
// returned false. Nothing is lost, and fetch() may be called again.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "objects/objects.hpp"
#include "os/files.hpp"

namespace trainyard::cli::tensorboard {

// The maximum of files of one job: TensorBoard is not usable with more. Further files are left out.
inline constexpr size_t kOwnFilesMax = 10'000;
// The maximum size of the files of one job, so that it cannot fill the disk of this machine.
inline constexpr uint64_t kOwnBytesMax = uint64_t(16) << 30;
inline constexpr size_t kLeftOutNamesMax = 20;  // further names are not reported

class OwnFiles {
 public:
  // Makes `directory` if it does not exist. Files in it are replaced.
  static Result<OwnFiles> open(const objects::Location& from, const std::string& directory);

  // Downloads new files and new bytes. Returns messages for the user: which files were left out,
  // and why.
  Result<std::vector<std::string>> fetch(objects::Objects& store,
                                         const std::function<bool()>& may_continue);

 private:
  // A downloaded file.
  struct Copy {
    std::string etag;  // of the object that it equals; "" = none
    uint64_t bytes = 0;
  };
  OwnFiles(objects::Location from, os::File directory)
      : from_(std::move(from)), directory_(std::move(directory)) {}
  Result<void> bring(objects::Objects& store, const objects::ObjectInfo& object,
                     const std::string& path, const std::function<bool()>& may_continue);
  Result<void> append(objects::Reader& from, const os::File& to, const std::string& path,
                      Copy& copy, const std::function<bool()>& may_continue);
  bool has_space_for(const objects::ObjectInfo& object, const std::string& path) const;
  void leave_out(const std::string& key, const std::string& why);

  objects::Location from_;
  os::File directory_;
  std::map<std::string, Copy> copies_;  // by path
  uint64_t bytes_ = 0;                  // the sum over all copies
  std::set<std::string> left_out_;
  std::vector<std::string> reports_;  // not yet returned by fetch()
};

// Returns the path of a file for a key, without its prefix. Errors: invalid: the path would not be
// below the directory.
Result<std::string> path_of_own_file(const std::string& rest);

}  // namespace trainyard::cli::tensorboard
