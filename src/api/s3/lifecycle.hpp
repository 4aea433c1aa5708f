// Removes objects and uploads that have expired by the lifecycle rules of their bucket.
//
// The decision (expires, aborts) is a pure function of a rule, what is stored, and the time.
// apply_lifecycle() lists the objects and acts. An object that is overwritten meanwhile stays.
//
// Threads: apply_lifecycle() reads the disk and may take long; call it from a thread of its own.
// Errors:  none. apply_lifecycle() logs failures, and the next call retries.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "objects/objects.hpp"
#include "s3/bucket_settings.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api::s3 {

// The maximum of days in a rule. S3's have 31 bits; more would not fit into an Instant.
inline constexpr int64_t kDaysMax = INT32_MAX;

// LifecycleRule is an enabled rule that removes objects or uploads.
struct LifecycleRule {
  std::string id;
  std::string prefix;
  std::map<std::string, std::string> tags;  // an object must have all of them
  std::optional<int64_t> bytes_above, bytes_below;
  std::optional<int64_t> expires_after_days;
  std::optional<Instant> expires_on;
  std::optional<int64_t> aborts_after_days;
};
std::vector<LifecycleRule> rules_in(const shapes::s3::BucketLifecycleConfiguration& lifecycle);

// Returns the instant `days` after `from`, rounded up to the next midnight UTC, as on S3.
Instant due_after(Instant from, int64_t days);

// Returns whether the rule removes the object. The object's tags are needed only if the rule has
// tags.
bool expires(const LifecycleRule& rule, const objects::ObjectInfo& object, Instant now);
bool aborts(const LifecycleRule& rule, const objects::UploadInfo& upload, Instant now);

struct LifecycleResult {
  uint64_t objects_removed = 0;
  uint64_t uploads_aborted = 0;
  uint64_t failures = 0;
};
// Applies the rules of all buckets once. `stop`: called between two objects; true ends it early.
LifecycleResult apply_lifecycle(objects::Objects& objects, const BucketSettings& settings,
                                Instant now, const std::function<bool()>& stop);

}  // namespace trainyard::api::s3
