// Verifies all objects of a directory (objects/directory.hpp): reads each from its files and
// compares it with its checksum. It changes nothing and takes no lock, so a server may have the
// directory open. An object that is replaced or removed meanwhile is read again or skipped.
//
// Threads: confined to one. Errors: those of reading directories. A broken object is not an error,
// but part of the report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::objects {

struct ScrubProgress {
  uint64_t objects = 0;      // objects read so far
  uint64_t bytes = 0;        // bytes read so far
  uint64_t bytes_total = 0;  // bytes of all files when the scrub started
};

struct ScrubSettings {
  std::string bucket;  // "": all buckets
  // Called at least once per kScrubStepBytes. It may wait, to leave disk bandwidth to others. If it
  // returns false, the scrub ends.
  std::function<bool(const ScrubProgress&)> may_continue = [](const ScrubProgress&) {
    return true;
  };
};
inline constexpr size_t kScrubStepBytes = 1 << 20;

struct BrokenObject {
  std::string bucket;
  std::string key;
  std::string why;
};

struct ScrubReport {
  uint64_t objects = 0;
  uint64_t bytes = 0;
  // objects that an early version joined from parts: only their length was compared
  uint64_t without_checksum = 0;
  std::vector<BrokenObject> broken;
  uint64_t broken_not_named = 0;  // broken objects beyond kBrokenNamedMax
  bool whole = true;              // false: may_continue() ended it
};
inline constexpr size_t kBrokenNamedMax = 10'000;  // limits the memory of the report

// Errors also: not_found (the directory or the bucket).
Result<ScrubReport> scrub_directory(const std::string& path, const ScrubSettings& settings);

}  // namespace trainyard::objects
