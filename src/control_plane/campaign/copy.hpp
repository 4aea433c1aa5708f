// Copies data to the region where its job runs: all objects below a prefix, from one object store
// to another.
//
// It skips objects that exist at the destination with the same size and source ETag. So a copy that
// was interrupted by a kill or an unreachable region continues when it is requested again. Large
// objects are copied in parts, and finished parts are not copied again.
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
  int64_t bytes_total = 0, bytes_copied = 0;  // copied: at the destination, also by earlier calls
  int64_t bytes_moved = 0;                    // transferred by this call, which is charged
};

struct CopyLimits {
  uint64_t part_bytes = 16 << 20;  // of large objects; after a kill at most a part is sent again
  size_t buffer_bytes = 1 << 20;
  size_t objects_max = 1'000'000;  // below one prefix
};

struct CopyEnd {
  objects::Objects& store;
  std::string uri;     // s3://bucket/prefix
  std::string region;  // where the bucket is created if it does not exist
};

// Copies all objects. `moved` is called after each piece; if it returns false, the copy ends.
Result<CopyProgress> copy_objects(const CopyEnd& from, const CopyEnd& to, const CopyLimits& limits,
                                  const std::function<bool(const CopyProgress&)>& moved);

// Returns the key of a copy: from "s3://a/drives/7/" to "s3://b/copies/7/", drives/7/x.csv becomes
// copies/7/x.csv. A URI without a final '/' may be an object or the prefix of several, as in
// S3Prefix; the rest of the key is then appended.
std::string target_key(const std::string& key, const std::string& from_prefix,
                       const std::string& to_prefix);

}  // namespace trainyard::campaign
