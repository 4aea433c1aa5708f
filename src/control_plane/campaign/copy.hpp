// Bringing data to the region where its job runs: every object below a prefix, from one object store to another.
//
// Level-triggered: what is there already is left as it is, by size and by the ETag of what it was copied from, so that a
// copy that was cut off (by a kill, by a lost region) goes on where it was when it is asked for again. A large object
// goes in parts, and its parts stay as well.
//
// Threads: callable from anywhere; blocks. Errors: those of the two stores; cancelled, when `moved` says so; invalid.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::campaign {

struct CopyProgress {
  int64_t objects_total = 0, objects_copied = 0;
  int64_t bytes_total = 0, bytes_copied = 0;  // copied: that are there, whoever brought them
  int64_t bytes_moved = 0;                    // by this call: what a transfer is charged by
};

struct CopyLimits {
  uint64_t part_bytes = 16 << 20;  // of large objects; what is sent again at most after a kill
  size_t buffer_bytes = 1 << 20;
  size_t objects_max = 1'000'000;  // below one prefix
};

struct Place {
  objects::Objects& store;
  std::string uri;     // s3://bucket/prefix
  std::string region;  // of a bucket that must be made
};

// `moved` is told after each piece; false ends the copy.
Result<CopyProgress> copy_objects(const Place& from, const Place& to, const CopyLimits& limits,
                                  const std::function<bool(const CopyProgress&)>& moved);

// "s3://a/drives/7/" to "s3://b/copies/7/": drives/7/x.csv becomes copies/7/x.csv. A URI without '/' at its end may be
// an object or the beginning of several, as S3Prefix has it; then what follows it is kept.
std::string target_key(const std::string& key, const std::string& from_prefix, const std::string& to_prefix);

}  // namespace trainyard::campaign
