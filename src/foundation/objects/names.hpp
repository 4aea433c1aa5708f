// Checks bucket names, keys and options of objects, and makes the errors about them.
//
// Threads: pure functions. Errors: invalid, except as described.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

// Checks S3's rules: 3 to 63 of a-z 0-9 . -, letters or digits at both ends, no "..", not an IPv4
// address.
Result<void> check_bucket_name(std::string_view bucket);
// Checks that a key has 1 to kKeyBytesMax bytes of UTF-8 without NUL. Any such text is a valid key,
// even "../x" and "a//b/".
Result<void> check_key(std::string_view key);
Result<void> check_tags(const std::map<std::string, std::string>& tags, size_t tags_max);
// Checks that headers, metadata and tags of an object are UTF-8, with at most 2 KiB of metadata (as
// S3) and 8 KiB of headers, and tags within S3's limits.
Result<void> check_options(const PutOptions& options);

// Make errors, each with its Fault as the detail.
Error no_bucket(std::string_view bucket);
Error no_key(std::string_view bucket, std::string_view key);
Error no_upload(std::string_view upload_id);
Error key_exists(std::string_view bucket, std::string_view key);
// Checks the condition only_if_etag of a write that replaces the object `replaced`. Errors:
// conflict (etag_differs).
Result<void> check_etag(const std::string& bucket, const ObjectInfo& replaced,
                        const std::string& only_if_etag);
// Checks that the object `present` is the one that a caller has seen: equal ETag and time of
// modification, and equal tags if `seen` has tags. Errors: conflict (etag_differs).
Result<void> check_unchanged(const std::string& bucket, const ObjectInfo& present,
                             const ObjectInfo& seen);
Error bucket_exists(std::string_view bucket);
Error bucket_not_empty(std::string_view bucket);

// Returns the range first..last that `range` selects from an object of `bytes` bytes, which was
// uploaded in `parts` (empty: as a whole). Errors: invalid (bad_range, part_missing).
Result<Range> resolve_range(const std::optional<Range>& range, uint64_t bytes,
                            const std::vector<PartInfo>& parts = {});

}  // namespace trainyard::objects
