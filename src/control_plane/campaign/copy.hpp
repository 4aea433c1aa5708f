// Copies data to the region where its job runs: every object below a prefix, from one object store
// to another.
//
// Skips objects that exist at the destination with the same size and source ETag, so a copy that a
// kill or the loss of a region interrupted continues when it is requested again. Large objects are
// copied in parts, and finished parts are kept as well.
//
// Threads: callable from anywhere; blocks. Errors: those of the two stores; cancelled, when `moved`
// returns false; invalid.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::campaign {

struct CopyProgress {
  int64_t objects_total = 0, objects_copied = 0;
  int64_t bytes_total = 0, bytes_copied = 0;  // copied: present, by this or an earlier copy
  int64_t bytes_moved = 0;                    // by this call: the transfer that is charged
};

struct CopyLimits {
  uint64_t part_bytes = 16 << 20;  // of large objects; at most this is sent again after a kill
  size_t buffer_bytes = 1 << 20;
  size_t objects_max = 1'000'000;  // below one prefix
};

struct CopyEnd {
  objects::Objects& store;
  std::string uri;     // s3://bucket/prefix
  std::string region;  // of a bucket that must be created
};

// `moved` is called after each piece; false ends the copy.
Result<CopyProgress> copy_objects(const CopyEnd& from, const CopyEnd& to, const CopyLimits& limits,
                                  const std::function<bool(const CopyProgress&)>& moved);

// "s3://a/drives/7/" to "s3://b/copies/7/": drives/7/x.csv becomes copies/7/x.csv. A URI without a
// final '/' may be an object or the prefix of several, as in S3Prefix; then the rest of the key is
// kept.
std::string target_key(const std::string& key, const std::string& from_prefix,
                       const std::string& to_prefix);

}  // namespace trainyard::campaign
