// Formats log events as the records of deliveries, and makes the keys of objects in the layout of
// AWS.
//
//   PREFIX/AWSLogs/ACCOUNT/SERVICE/REGION/2026/11/28/
//       ACCOUNT_SERVICE_REGION_DELIVERY_20261128T0310Z_1b2c3d4e.log.gz
//
// A suffix of the delivery replaces REGION/2026/11/28. If the suffix begins with AWSLogs/ACCOUNT/
// (in the form of Hive: AWSLogs/aws-account-id=ACCOUNT/), it replaces the whole path below PREFIX.
// In the form of Hive, each variable of the suffix is a directory "name=value". Equal arguments
// give equal keys, so a repeated delivery replaces its object.
//
// Threads: pure functions. Errors: invalid.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "log_routing/delivery_records.hpp"
#include "observe/logs.hpp"

namespace trainyard::log_routing {

// Returns one event of a stream as text without an end of line. A field is "timestamp" (in ISO
// 8601), "ingestion_time", "log_group", "log_stream", "message", or a member of a message that is a
// JSON object. In plain format, "-" stands for a missing field.
std::string record_text(const observe::StreamKey& stream, const observe::LogEvent& event,
                        DeliveryFormat format, const DeliveryOptions& options);

// The bucket and the prefix in arn:aws:s3:::BUCKET/PREFIX. The prefix is "" or ends with '/', and
// does not begin with '/'.
struct BucketPrefix {
  std::string bucket, prefix;
};
Result<BucketPrefix> parse_bucket_arn(std::string_view arn);

// Checks options. Errors: invalid: an unknown variable in the suffix, a repeated field, or a
// character that is not allowed in keys or lines.
Result<void> check_options(const DeliveryOptions& options);

struct ObjectName {
  std::string prefix;  // of the bucket
  std::string account, service, region, delivery;
  std::string suffix;  // "": the default
  bool hive_path = false;
  Instant at;               // the time of the first event
  std::string_view stream;  // together with `position`, identifies the object
  uint64_t position = 0;
};
// Requires: check_options() accepts the suffix.
std::string object_key(const ObjectName& name);

}  // namespace trainyard::log_routing
