// Moves files between a file system and linked prefixes of S3: an import fetches objects, an export
// puts files. Both skip files that are up to date, so a repeated exchange continues where an
// earlier one ended.
//
// Threads: each call uses several threads, and returns when they have ended.
// Errors:  those that end the whole exchange: not_found (no bucket), denied, exhausted (capacity,
//          disk full), unavailable, cancelled. A fault of one file is in the result instead.
// Lifetime: everything that the Exchange refers to outlives the call.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/disk_reserve.hpp"
#include "base/thread_safety.hpp"
#include "file_systems/check.hpp"
#include "file_systems/content.hpp"
#include "file_systems/file_systems.hpp"
#include "objects/objects.hpp"

namespace trainyard::file_systems {

struct ExchangeResult {
  int64_t total = 0, succeeded = 0;
  std::vector<FileFailure> failures;  // at most kFailuresMax
  int64_t failed = 0;
  int64_t misnamed = 0;  // the part of `failed` with keys that are not valid paths
};
// Limits the failures that a result describes, and so its memory.
inline constexpr size_t kFailuresMax = 10'000;

struct Exchange {
  objects::Objects& objects;
  const Content& content;
  Progress& progress;
  std::function<bool()> cancelled;
  CheckDiskSpace check_disk_space;
  uint64_t capacity_bytes = 0;
  // True: if the store does not answer, the exchange ends, to be repeated later. False: each file
  // fails.
  bool waits_for_store = false;
};

// Imports the objects of a link. `paths`: only these directories and files; empty: all.
Result<ExchangeResult> import_objects(const Exchange& exchange, const Link& link,
                                      const std::vector<std::string>& paths, ImportMode mode);

// Exports new and changed files. `imports`: links that imported files; unchanged imported files are
// not exported to other links.
Result<ExchangeResult> export_files(const Exchange& exchange, const std::vector<Link>& links,
                                    const std::vector<Link>& imports,
                                    const std::vector<std::string>& paths);

// Writes a task's report, and returns its URI.
Result<std::string> write_report(objects::Objects& objects, const RepositoryTask& task,
                                 const ExchangeResult& result);

}  // namespace trainyard::file_systems
