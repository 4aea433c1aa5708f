// Reads every object of a directory (objects/directory.hpp) from its files and compares it with its
// checksum. Changes nothing and takes no lock, so a server may have the directory open: an object
// that is replaced or removed meanwhile is read again or skipped.
//
// Threads: confined to one. Errors: those of reading directories; a broken object is part of the
// report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace trainyard::objects {

struct ScrubProgress {
  uint64_t objects = 0;    // read so far
  uint64_t bytes = 0;      // of these objects
  uint64_t bytes_all = 0;  // of all files, at the beginning
};

struct ScrubSettings {
  std::string bucket;  // "": all
  // Called at least once per kScrubStepBytes. It may wait, to leave disk bandwidth to others; false
  // ends the scrub.
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
  // of the whole: joined by an early version; only their length was compared
  uint64_t without_checksum = 0;
  std::vector<BrokenObject> broken;
  uint64_t broken_not_named = 0;  // beyond kBrokenNamedMax
  bool whole = true;              // false: may_continue() ended it
};
inline constexpr size_t kBrokenNamedMax = 10'000;  // bounds the report's memory

// Errors also: not_found (the directory or the bucket).
Result<ScrubReport> scrub_directory(const std::string& path, const ScrubSettings& settings);

}  // namespace trainyard::objects
