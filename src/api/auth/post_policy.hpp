// Decodes and checks the policy document of a browser's upload (S3's POST policy): when a form
// expires, and which values its fields may have.
//
//   {"expiration": "2026-12-30T12:00:00.000Z",
//    "conditions": [{"bucket": "data"}, ["starts-with", "$key", "user/"],
//                   ["content-length-range", 1, 1048576]]}
//
// Threads: pure functions.
// Errors:  invalid (the document), denied (a form that violates it); messages are S3's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "protocol/rest_xml.hpp"

namespace trainyard::api {

// Twice the number of fields that a form may have.
inline constexpr size_t kPostConditionsMax = 200;
// The maximum size of an upload without parts, as in S3.
inline constexpr uint64_t kPostFileBytesMax = uint64_t{5} << 30;

struct PostCondition {
  bool whole = true;  // true: the values are equal; false: the field starts with `value`
  std::string field;  // in lower case, without "$"
  std::string value;
};

struct PostPolicy {
  Instant expiration;
  std::vector<PostCondition> conditions;
  uint64_t bytes_min = 0, bytes_max = kPostFileBytesMax;  // of the file
};

Result<PostPolicy> parse_post_policy(std::string_view json);

// Checks a form. `fields`: the form's, with names in lower case. `bucket`: from the request's
// address. Each field must have a condition, except policy, x-amz-signature, file, and fields whose
// names begin with x-ignore-.
Result<void> check_post_policy(const PostPolicy& policy, const NameValues& fields,
                               std::string_view bucket, Instant now);

}  // namespace trainyard::api
