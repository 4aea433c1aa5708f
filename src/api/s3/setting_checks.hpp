// Checks the configurations of buckets as S3 does: counts and combinations of members, with S3's
// errors. settings.cpp checks required members and enumerations before.
//
// Threads: pure functions. Errors: failures with S3's codes and texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/errors.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api::s3 {

// S3's limits.
inline constexpr size_t kCorsRulesMax = 100;
inline constexpr size_t kLifecycleRulesMax = 1'000;
inline constexpr size_t kRuleIdBytesMax = 255;
inline constexpr size_t kRoutingRulesMax = 50;

// Makes the failure "The XML you provided was not well-formed or did not validate against our
// published schema".
Failure malformed_xml();

std::optional<Failure> check_cors(const shapes::s3::CORSConfiguration& cors);
// Requires: each rule has an ID.
std::optional<Failure> check_lifecycle(const shapes::s3::BucketLifecycleConfiguration& lifecycle);
// The default of the minimum object size for transitions, which have no effect here.
inline constexpr std::string_view kTransitionSize = "all_storage_classes_128K";  // S3's default
std::optional<Failure> check_transition_size(const std::string& size);
std::optional<Failure> check_encryption(
    const shapes::s3::ServerSideEncryptionConfiguration& encryption);
std::optional<Failure> check_website(const shapes::s3::WebsiteConfiguration& website);
std::optional<Failure> check_acceleration(const std::string& bucket,
                                          const shapes::s3::AccelerateConfiguration& acceleration);
// Sets missing flags to false.
std::optional<Failure> complete_public_access(shapes::s3::PublicAccessBlockConfiguration& block);
std::optional<Failure> check_ownership(const shapes::s3::OwnershipControls& ownership);
// `skip`: the request skips the validation of destinations.
std::optional<Failure> check_notification(const shapes::s3::NotificationConfiguration& notification,
                                          bool skip);

}  // namespace trainyard::api::s3
