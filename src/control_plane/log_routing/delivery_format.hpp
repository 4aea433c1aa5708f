// Writes log events in the forms that deliveries have: lines of objects and events, and the keys of
// objects in AWS's layout.
//
//   PREFIX/AWSLogs/ACCOUNT/SERVICE/REGION/2026/11/28/
//       ACCOUNT_SERVICE_REGION_DELIVERY_20261128T0310Z_1b2c3d4e.log.gz
//
// A suffix of the delivery replaces REGION/2026/11/28, or the whole path below PREFIX if it begins
// with AWSLogs/ACCOUNT/, in Hive's form AWSLogs/aws-account-id=ACCOUNT/. In the form of Hive each
// of its variables is a directory "name=value". Equal arguments give equal keys, so a repeated
// delivery replaces its object.
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

// One event of a stream, as text without an end of line. A field is "timestamp" (in ISO 8601),
// "ingestion_time", "log_group", "log_stream", "message", or a member of a message that is a JSON
// object; in plain format a missing one is "-".
std::string record_text(const observe::StreamKey& stream, const observe::LogEvent& event,
                        DeliveryFormat format, const DeliveryOptions& options);

// "bucket" or "bucket/prefix", of arn:aws:s3:::BUCKET/PREFIX. The prefix ends with '/', and may not
// begin with it.
struct BucketPlace {
  std::string bucket, prefix;
};
Result<BucketPlace> bucket_place(std::string_view arn);

// Errors: invalid: an unknown variable of the suffix, a repeated field, or a character that keys or
// lines may not have.
Result<void> check_options(const DeliveryOptions& options);

struct ObjectName {
  std::string prefix;  // of the bucket
  std::string account, service, region, delivery;
  std::string suffix;  // "": the default
  bool hive_path = false;
  Instant at;               // of the first event
  std::string_view stream;  // with `position` it identifies the object
  uint64_t position = 0;
};
// Requires: check_options() accepts the suffix.
std::string object_key(const ObjectName& name);

}  // namespace trainyard::log_routing
