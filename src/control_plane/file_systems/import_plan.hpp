// Decides which objects of a linked prefix become which files: the path of each key, the files that
// are up to date, and the keys that are not valid paths.
//
// Object keys are hostile. Keys with "..", "." or NUL, too long names, two keys for one file, and a
// file where another key needs a directory are failures of these keys only. A path is always below
// the linked directory.
//
// Threads: pure functions. Errors: none; failures are a part of the plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "objects/objects.hpp"

namespace trainyard::file_systems {

struct FileFacts {
  uint64_t bytes = 0;
  Instant modified;
  bool operator==(const FileFacts&) const = default;
};
using Files = std::map<std::string, FileFacts>;  // by path below the file system's root

// Selects the objects of an import.
enum class ImportMode {
  all,            // new and changed objects: the first import, and tasks
  added,          // only objects without a file
  added_changed,  // as `all`, for automatic imports
};

struct Fetch {
  std::string key, path;
  uint64_t bytes = 0;
  Instant modified;
  bool directory = false;  // a key that ends with a slash: an empty directory
};

// A file that could not be exchanged. `code` is the error code of a task's report.
struct FileFailure {
  std::string path, code, why;
};

struct ImportPlan {
  std::vector<Fetch> fetches;
  std::vector<FileFailure> failures;
  size_t present = 0;  // objects whose file is up to date
  uint64_t bytes = 0;  // of all objects with valid paths; saturates
};

// Returns the path of `key`, which begins with `prefix`, below `directory`. Errors: invalid.
Result<std::string> path_of_key(std::string_view key, std::string_view prefix,
                                std::string_view directory);

// Plans an import. Objects are fetched only if they were modified after their file, so a file that
// a job wrote later stays. `paths`: only these directories and files; empty: all.
ImportPlan plan_import(const std::vector<objects::ObjectInfo>& listed, std::string_view prefix,
                       std::string_view directory, const std::vector<std::string>& paths,
                       const Files& present, ImportMode mode);

// Returns a text with the first failure and the number of others.
std::string summary_of(const std::vector<FileFailure>& failures);

// Returns a line of a task's report, in AWS's format: path,status,code.
std::string report_line(const FileFailure& failure);

}  // namespace trainyard::file_systems
