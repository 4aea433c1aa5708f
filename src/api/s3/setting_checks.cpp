#include "s3/setting_checks.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "s3/lifecycle.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

template <class T>
size_t size_of(const std::optional<std::vector<T>>& list) {
  return list ? list->size() : 0;
}

// -- CORS

bool has_many_wildcards(const std::string& text) { return std::ranges::count(text, '*') > 1; }

std::optional<Failure> check_cors_rule(const s3::CORSRule& rule) {
  if (rule.id && rule.id->size() > kRuleIdBytesMax)
    return invalid_request("ID length should not exceed allowed limit of 255");
  if (rule.allowed_methods->empty() || rule.allowed_origins->empty()) return malformed_xml();
  constexpr std::array<std::string_view, 5> kMethods{"GET", "PUT", "POST", "DELETE", "HEAD"};
  for (const auto& method : *rule.allowed_methods)
    if (std::ranges::find(kMethods, method) == kMethods.end())
      return invalid_request(
          "Found unsupported HTTP method in CORS config. Unsupported method is " +
          shorten(method, 40));
  for (const auto& origin : *rule.allowed_origins)
    if (has_many_wildcards(origin))
      return invalid_request("AllowedOrigin \"" + shorten(origin, 200) +
                             "\" can not have more than one wildcard.");
  for (const auto& header : rule.allowed_headers.value_or(std::vector<std::string>()))
    if (has_many_wildcards(header))
      return invalid_request("AllowedHeader \"" + shorten(header, 200) +
                             "\" can not have more than one wildcard.");
  for (const auto& header : rule.expose_headers.value_or(std::vector<std::string>()))
    if (header.find('*') != std::string::npos)
      return invalid_request("ExposeHeader \"" + shorten(header, 200) +
                             "\" contains wildcard. We currently do not support wildcard for "
                             "ExposeHeader.");
  return std::nullopt;
}

// -- lifecycle

bool is_midnight(Instant at) { return std::chrono::floor<std::chrono::days>(at) == at; }

// The predicates of a filter or of its And.
template <class Predicates>
std::optional<Failure> check_sizes(const Predicates& of) {
  if (of.object_size_greater_than && of.object_size_less_than &&
      *of.object_size_less_than <= *of.object_size_greater_than)
    return invalid_request(
        "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.");
  return std::nullopt;
}

std::optional<Failure> check_and(const s3::LifecycleRuleAndOperator& both) {
  const size_t predicates = size_t(both.prefix.has_value()) + size_of(both.tags) +
                            size_t(both.object_size_greater_than.has_value()) +
                            size_t(both.object_size_less_than.has_value());
  if (predicates < 2) return malformed_xml();
  std::set<std::string> keys;
  for (const auto& tag : both.tags.value_or(std::vector<s3::Tag>()))
    if (!keys.insert(*tag.key).second)
      return invalid_request("Duplicate Tag Keys are not allowed.");
  return check_sizes(both);
}

std::optional<Failure> check_filter(const s3::LifecycleRule& rule) {
  if (rule.prefix.has_value() == rule.filter.has_value()) return malformed_xml();
  if (!rule.filter) return std::nullopt;
  const s3::LifecycleRuleFilter& filter = *rule.filter;
  const int given = int(filter.prefix.has_value()) + int(filter.tag.has_value()) +
                    int(filter.object_size_greater_than.has_value()) +
                    int(filter.object_size_less_than.has_value()) + int(filter.and_.has_value());
  if (given > 1) return malformed_xml();
  return filter.and_ ? check_and(*filter.and_) : std::nullopt;
}

bool filters_by_tag(const s3::LifecycleRule& rule) {
  return rule.filter &&
         (rule.filter->tag || (rule.filter->and_ && size_of(rule.filter->and_->tags) > 0));
}

std::optional<Failure> check_expiration(const s3::LifecycleRule& rule) {
  const s3::LifecycleExpiration& expiration = *rule.expiration;
  const int given = int(expiration.days.has_value()) + int(expiration.date.has_value()) +
                    int(expiration.expired_object_delete_marker.has_value());
  if (given != 1) return malformed_xml();
  if (expiration.days.value_or(1) > kDaysMax) return malformed_xml();
  if (expiration.days && *expiration.days <= 0)
    return invalid_argument("'Days' for Expiration action must be a positive integer");
  if (expiration.date && !is_midnight(*expiration.date))
    return invalid_argument("'Date' must be at midnight GMT");
  if (expiration.expired_object_delete_marker && filters_by_tag(rule))
    return invalid_request("ExpiredObjectDeleteMarker cannot be specified with Tags.");
  return std::nullopt;
}

std::optional<Failure> check_transitions(const s3::LifecycleRule& rule) {
  for (const auto& each : rule.transitions.value_or(std::vector<s3::Transition>())) {
    if (!each.storage_class || each.days.has_value() == each.date.has_value())
      return malformed_xml();
    if (each.days && *each.days < 0)
      return invalid_argument("'Days' for Transition action must be nonnegative");
    if (each.date && !is_midnight(*each.date))
      return invalid_argument("'Date' must be at midnight GMT");
  }
  for (const auto& each :
       rule.noncurrent_version_transitions.value_or(std::vector<s3::NoncurrentVersionTransition>()))
    if (!each.storage_class || !each.noncurrent_days) return malformed_xml();
  return std::nullopt;
}

std::optional<Failure> check_actions(const s3::LifecycleRule& rule) {
  if (!rule.expiration && size_of(rule.transitions) == 0 && !rule.noncurrent_version_expiration &&
      size_of(rule.noncurrent_version_transitions) == 0 && !rule.abort_incomplete_multipart_upload)
    return invalid_request("At least one action needs to be specified in a rule.");
  if (rule.expiration)
    if (auto failure = check_expiration(rule)) return failure;
  if (rule.noncurrent_version_expiration &&
      rule.noncurrent_version_expiration->noncurrent_days.value_or(0) <= 0)
    return invalid_argument(
        "'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive integer");
  if (rule.abort_incomplete_multipart_upload) {
    const auto& days = rule.abort_incomplete_multipart_upload->days_after_initiation;
    if (!days || *days > kDaysMax) return malformed_xml();
    if (*days <= 0)
      return invalid_argument(
          "'DaysAfterInitiation' for AbortIncompleteMultipartUpload action must be a positive "
          "integer");
    if (filters_by_tag(rule))
      return invalid_request("AbortIncompleteMultipartUpload cannot be specified with Tags.");
  }
  return check_transitions(rule);
}

}  // namespace

Failure malformed_xml() {
  return unreadable_body(s3::kService,
                         "The XML you provided was not well-formed or did not validate against our "
                         "published schema");
}

std::optional<Failure> check_cors(const s3::CORSConfiguration& cors) {
  if (cors.cors_rules->empty() || cors.cors_rules->size() > kCorsRulesMax) return malformed_xml();
  for (const auto& rule : *cors.cors_rules)
    if (auto failure = check_cors_rule(rule)) return failure;
  return std::nullopt;
}

std::optional<Failure> check_lifecycle(const s3::BucketLifecycleConfiguration& lifecycle) {
  if (lifecycle.rules->empty() || lifecycle.rules->size() > kLifecycleRulesMax)
    return malformed_xml();
  std::set<std::string> ids;
  for (const auto& rule : *lifecycle.rules) {
    if (rule.id->size() > kRuleIdBytesMax)
      return invalid_argument("ID length should not exceed allowed limit of 255");
    if (!ids.insert(*rule.id).second)
      return invalid_argument("Rule ID must be unique. Found same ID for one or more rules");
    if (auto failure = check_filter(rule)) return failure;
    if (auto failure = check_actions(rule)) return failure;
  }
  return std::nullopt;
}

std::optional<Failure> check_transition_size(const std::string& size) {
  if (size == kTransitionSize || size == "varies_by_storage_class") return std::nullopt;
  return invalid_argument(
      "Invalid x-amz-transition-default-minimum-object-size header: " + shorten(size, 60) +
      ". Use all_storage_classes_128K or varies_by_storage_class");
}

std::optional<Failure> check_encryption(const s3::ServerSideEncryptionConfiguration& encryption) {
  if (encryption.rules->size() != 1) return malformed_xml();
  const s3::ServerSideEncryptionRule& rule = encryption.rules->front();
  if (!rule.apply_server_side_encryption_by_default) return malformed_xml();
  const auto& by_default = *rule.apply_server_side_encryption_by_default;
  if (!by_default.kms_master_key_id || by_default.kms_master_key_id->empty()) return std::nullopt;
  if (!by_default.sse_algorithm->starts_with("aws:kms"))
    return invalid_argument(
        "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or "
        "aws:kms:dsse");
  return not_implemented(
      "A member you provided implies functionality that is not implemented: KMSMasterKeyID. This "
      "server has no KMS keys: leave it out, and keep the data directory on an encrypted disk.");
}

std::optional<Failure> check_website(const s3::WebsiteConfiguration& website) {
  if (website.redirect_all_requests_to) {
    if (website.index_document || website.error_document || website.routing_rules)
      return invalid_argument(
          "RedirectAllRequestsTo cannot be provided in conjunction with other Routing Rules.");
    return std::nullopt;
  }
  if (!website.index_document)
    return invalid_argument(
        "A value for IndexDocument Suffix must be provided if RedirectAllRequestsTo is empty");
  const std::string& suffix = *website.index_document->suffix;
  if (suffix.empty() || suffix.find('/') != std::string::npos)
    return invalid_argument("The IndexDocument Suffix is not well formed");
  if (size_of(website.routing_rules) > kRoutingRulesMax)
    return invalid_request(std::to_string(size_of(website.routing_rules)) +
                           " routing rules provided, the number of routing rules in a website "
                           "configuration is limited to 50.");
  return std::nullopt;
}

std::optional<Failure> check_acceleration(const std::string& bucket,
                                          const s3::AccelerateConfiguration& acceleration) {
  if (!acceleration.status) return malformed_xml();
  if (bucket.find('.') != std::string::npos)
    return invalid_request(
        "S3 Transfer Acceleration is not supported for buckets with periods (.) in their names");
  return std::nullopt;
}

std::optional<Failure> complete_public_access(s3::PublicAccessBlockConfiguration& block) {
  bool given = false;
  for (auto* flag : {&block.block_public_acls, &block.ignore_public_acls,
                     &block.block_public_policy, &block.restrict_public_buckets}) {
    given = given || flag->has_value();
    *flag = flag->value_or(false);
  }
  if (!given) return invalid_request("Must specify at least one configuration.");
  return std::nullopt;
}

std::optional<Failure> check_ownership(const s3::OwnershipControls& ownership) {
  return ownership.rules->size() == 1 ? std::nullopt : std::optional(malformed_xml());
}

std::optional<Failure> check_notification(const s3::NotificationConfiguration& notification,
                                          bool skip) {
  const bool has_destinations = size_of(notification.topic_configurations) +
                                    size_of(notification.queue_configurations) +
                                    size_of(notification.lambda_function_configurations) >
                                0;
  if (!has_destinations || skip) return std::nullopt;
  // This server has no topics, queues and functions.
  return invalid_argument("Unable to validate the following destination configurations");
}

}  // namespace trainyard::api::s3
