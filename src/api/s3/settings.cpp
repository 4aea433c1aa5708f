// Implements the operations on the settings of buckets. Each configuration is stored and returned
// unchanged; docs/operating/s3.md lists those with an effect.
#include <functional>
#include <memory>

#include "protocol/constraints.hpp"
#include "s3/bucket_settings.hpp"
#include "s3/common.hpp"
#include "s3/setting_checks.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

// The dependencies that the operations share.
struct Parts {
  objects::Objects& objects;
  Random& random;
  SharedSettings settings;
  Constraints constraints{s3::kService};
};
using Shared = std::shared_ptr<const Parts>;

template <class Input>
std::optional<Failure> check_bucket(const Parts& parts, const Context& context, const Input& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return failure;
  if (const auto info = parts.objects.head_bucket(*in.bucket); !info)
    return s3_failure_of(info.error(), *in.bucket, "");
  return std::nullopt;
}

// Checks a configuration beyond its model, and may complete it.
template <class Put>
using Check = std::function<std::optional<Failure>(typename Put::Input& in)>;

template <class Put>
void add_put(OperationTable& table, const Shared& parts, Setting setting, Check<Put> check) {
  table.add<Put>(
      [parts, setting, check = std::move(check)](
          const Context& context, const typename Put::Input& in) -> Outcome<typename Put::Output> {
        if (auto failure = check_bucket(*parts, context, in)) return *failure;
        typename Put::Input kept = in;
        const shapes::Member& payload = *Put::shape().input->payload;
        const void* configuration = payload.find(&kept);
        if (!configuration || parts->constraints.check(*payload.shape, configuration))
          return malformed_xml();
        if (auto failure = check(kept)) return *failure;
        TRY_S3(parts->settings->put(context.principal, *in.bucket, setting, *payload.shape,
                                    payload.find(&kept)),
               *in.bucket, "");
        return typename Put::Output();
      });
}

// Adds a read. `absent`: returns the response for a bucket without the setting.
template <class Get>
void add_get(OperationTable& table, const Shared& parts, Setting setting,
             std::function<Outcome<typename Get::Output>()> absent) {
  table.add<Get>(
      [parts, setting, absent = std::move(absent)](
          const Context& context, const typename Get::Input& in) -> Outcome<typename Get::Output> {
        if (auto failure = check_bucket(*parts, context, in)) return *failure;
        typename Get::Output out;
        const shapes::Shape& shape = *Get::shape().output;
        const bool found = shape.payload
                               ? parts->settings->read(*in.bucket, setting, *shape.payload->shape,
                                                       shape.payload->emplace(&out))
                               : parts->settings->read(*in.bucket, setting, shape, &out);
        if (found) return out;
        auto otherwise = absent();
        if (otherwise) return otherwise;
        Failure failure = otherwise.failure(s3::kService);
        failure.resource = *in.bucket;
        return failure;
      });
}

template <class Delete>
void add_delete(OperationTable& table, const Shared& parts, Setting setting) {
  table.add<Delete>(
      [parts, setting](const Context& context,
                       const typename Delete::Input& in) -> Outcome<typename Delete::Output> {
        if (auto failure = check_bucket(*parts, context, in)) return *failure;
        TRY_S3(parts->settings->remove(*in.bucket, setting), *in.bucket, "");
        return typename Delete::Output{};
      });
}

// Makes the response of a read for a missing setting: S3's error.
template <class Get>
std::function<Outcome<typename Get::Output>()> absent(std::string code, std::string message) {
  return [failure = s3_failure(404, std::move(code), std::move(message))] { return failure; };
}
template <class Get>
std::function<Outcome<typename Get::Output>()> otherwise(typename Get::Output output = {}) {
  return [output] { return output; };
}

// -- settings with an effect

void add_cors(OperationTable& table, const Shared& parts) {
  add_put<s3::PutBucketCors>(table, parts, Setting::cors, [](s3::PutBucketCorsRequest& in) {
    return check_cors(*in.cors_configuration);
  });
  add_get<s3::GetBucketCors>(table, parts, Setting::cors,
                             absent<s3::GetBucketCors>("NoSuchCORSConfiguration",
                                                       "The CORS configuration does not exist"));
  add_delete<s3::DeleteBucketCors>(table, parts, Setting::cors);
}

// Sets the ID of rules without one. The setting is stored in the shape of Get's output, which also
// has the minimum size, a header of the request.
Outcome<s3::PutBucketLifecycleConfigurationOutput> put_lifecycle(
    const Parts& parts, const Context& context,
    const s3::PutBucketLifecycleConfigurationRequest& in) {
  if (auto failure = check_bucket(parts, context, in)) return *failure;
  const shapes::Member& payload = *s3::PutBucketLifecycleConfiguration::shape().input->payload;
  if (!in.lifecycle_configuration ||
      parts.constraints.check(*payload.shape, &*in.lifecycle_configuration))
    return malformed_xml();
  s3::BucketLifecycleConfiguration kept = *in.lifecycle_configuration;
  constexpr size_t kIdBytes = 24;  // in hex the length of S3's own IDs
  for (auto& rule : *kept.rules)
    if (!rule.id || rule.id->empty()) rule.id = parts.random.hex(kIdBytes);
  if (auto failure = check_lifecycle(kept)) return *failure;
  const std::string size =
      in.transition_default_minimum_object_size.value_or(std::string(kTransitionSize));
  if (auto failure = check_transition_size(size)) return *failure;
  const s3::GetBucketLifecycleConfigurationOutput stored{
      .rules = std::move(kept.rules), .transition_default_minimum_object_size = size};
  const shapes::Shape& shape = *s3::GetBucketLifecycleConfiguration::shape().output;
  TRY_S3(parts.settings->put(context.principal, *in.bucket, Setting::lifecycle, shape, &stored),
         *in.bucket, "");
  return s3::PutBucketLifecycleConfigurationOutput{.transition_default_minimum_object_size = size};
}

void add_lifecycle(OperationTable& table, const Shared& parts) {
  table.add<s3::PutBucketLifecycleConfiguration>(
      [parts](const Context& context, const s3::PutBucketLifecycleConfigurationRequest& in) {
        return put_lifecycle(*parts, context, in);
      });
  table.add<s3::GetBucketLifecycleConfiguration>(
      [parts](const Context& context, const s3::GetBucketLifecycleConfigurationRequest& in)
          -> Outcome<s3::GetBucketLifecycleConfigurationOutput> {
        if (auto failure = check_bucket(*parts, context, in)) return *failure;
        s3::GetBucketLifecycleConfigurationOutput out{.transition_default_minimum_object_size =
                                                          std::string(kTransitionSize)};
        const shapes::Shape& shape = *s3::GetBucketLifecycleConfiguration::shape().output;
        if (parts->settings->read(*in.bucket, Setting::lifecycle, shape, &out)) return out;
        Failure failure = s3_failure(404, "NoSuchLifecycleConfiguration",
                                     "The lifecycle configuration does not exist");
        failure.resource = *in.bucket;
        return failure;
      });
  add_delete<s3::DeleteBucketLifecycle>(table, parts, Setting::lifecycle);
}

void add_public_access(OperationTable& table, const Shared& parts) {
  add_put<s3::PutPublicAccessBlock>(
      table, parts, Setting::public_access, [](s3::PutPublicAccessBlockRequest& in) {
        return complete_public_access(*in.public_access_block_configuration);
      });
  add_get<s3::GetPublicAccessBlock>(
      table, parts, Setting::public_access,
      absent<s3::GetPublicAccessBlock>("NoSuchPublicAccessBlockConfiguration",
                                       "The public access block configuration was not found"));
  add_delete<s3::DeletePublicAccessBlock>(table, parts, Setting::public_access);
}

// -- settings that are stored only

void add_ownership(OperationTable& table, const Shared& parts) {
  add_put<s3::PutBucketOwnershipControls>(table, parts, Setting::ownership,
                                          [](s3::PutBucketOwnershipControlsRequest& in) {
                                            return check_ownership(*in.ownership_controls);
                                          });
  s3::GetBucketOwnershipControlsOutput enforced;
  enforced.ownership_controls.emplace().rules.emplace().push_back(
      {.object_ownership = "BucketOwnerEnforced"});
  // Deleted controls are stored as a configuration without rules, since new buckets have rules.
  table.add<s3::GetBucketOwnershipControls>(
      [parts, enforced](const Context& context, const s3::GetBucketOwnershipControlsRequest& in)
          -> Outcome<s3::GetBucketOwnershipControlsOutput> {
        if (auto failure = check_bucket(*parts, context, in)) return *failure;
        s3::GetBucketOwnershipControlsOutput out;
        auto& controls = out.ownership_controls.emplace();
        const shapes::Shape& shape =
            *s3::GetBucketOwnershipControls::shape().output->payload->shape;
        if (!parts->settings->read(*in.bucket, Setting::ownership, shape, &controls))
          return enforced;
        if (controls.rules && !controls.rules->empty()) return out;
        Failure failure = s3_failure(404, "OwnershipControlsNotFoundError",
                                     "The bucket ownership controls were not found");
        failure.resource = *in.bucket;
        return failure;
      });
  table.add<s3::DeleteBucketOwnershipControls>(
      [parts](const Context& context,
              const s3::DeleteBucketOwnershipControlsRequest& in) -> Outcome<s3::Nothing> {
        if (auto failure = check_bucket(*parts, context, in)) return *failure;
        const s3::OwnershipControls none{.rules = std::vector<s3::OwnershipControlsRule>()};
        TRY_S3(put_ownership(*parts->settings, context.principal, *in.bucket, none), *in.bucket,
               "");
        return s3::Nothing{};
      });
}

void add_encryption(OperationTable& table, const Shared& parts) {
  add_put<s3::PutBucketEncryption>(
      table, parts, Setting::encryption, [](s3::PutBucketEncryptionRequest& in) {
        return check_encryption(*in.server_side_encryption_configuration);
      });
  add_get<s3::GetBucketEncryption>(
      table, parts, Setting::encryption,
      absent<s3::GetBucketEncryption>("ServerSideEncryptionConfigurationNotFoundError",
                                      "The server side encryption configuration was not found"));
  add_delete<s3::DeleteBucketEncryption>(table, parts, Setting::encryption);
}

void add_website(OperationTable& table, const Shared& parts) {
  add_put<s3::PutBucketWebsite>(
      table, parts, Setting::website,
      [](s3::PutBucketWebsiteRequest& in) { return check_website(*in.website_configuration); });
  add_get<s3::GetBucketWebsite>(
      table, parts, Setting::website,
      absent<s3::GetBucketWebsite>("NoSuchWebsiteConfiguration",
                                   "The specified bucket does not have a website configuration"));
  add_delete<s3::DeleteBucketWebsite>(table, parts, Setting::website);
}

// Checks that the target bucket of access logs exists in the bucket's region.
std::optional<Failure> check_logging(const Parts& parts, const s3::PutBucketLoggingRequest& in) {
  if (!in.bucket_logging_status->logging_enabled) return std::nullopt;
  const s3::LoggingEnabled& logging = *in.bucket_logging_status->logging_enabled;
  if (logging.target_grants && !logging.target_grants->empty()) return acl_not_supported();
  const auto target = parts.objects.head_bucket(*logging.target_bucket);
  if (!target)
    return s3_failure(400, "InvalidTargetBucketForLogging",
                      "The target bucket for logging does not exist");
  const auto source = parts.objects.head_bucket(*in.bucket);
  if (source && source->region != target->region)
    return s3_failure(403, "CrossLocationLoggingProhibitted",
                      "Cross S3 location logging not allowed.");
  return std::nullopt;
}

void add_others(OperationTable& table, const Shared& parts) {
  add_put<s3::PutBucketLogging>(
      table, parts, Setting::logging,
      [parts](s3::PutBucketLoggingRequest& in) { return check_logging(*parts, in); });
  add_get<s3::GetBucketLogging>(table, parts, Setting::logging, otherwise<s3::GetBucketLogging>());
  add_put<s3::PutBucketNotificationConfiguration>(
      table, parts, Setting::notification, [](s3::PutBucketNotificationConfigurationRequest& in) {
        return check_notification(*in.notification_configuration,
                                  in.skip_destination_validation.value_or(false));
      });
  add_get<s3::GetBucketNotificationConfiguration>(
      table, parts, Setting::notification, otherwise<s3::GetBucketNotificationConfiguration>());
  add_put<s3::PutBucketAccelerateConfiguration>(
      table, parts, Setting::acceleration,
      [parts](s3::PutBucketAccelerateConfigurationRequest& in) {
        auto failure = check_acceleration(*in.bucket, *in.accelerate_configuration);
        // As on S3, acceleration that was never enabled cannot be suspended.
        s3::AccelerateConfiguration before;
        const shapes::Shape& shape =
            *s3::PutBucketAccelerateConfiguration::shape().input->payload->shape;
        parts->settings->read(*in.bucket, Setting::acceleration, shape, &before);
        if (!failure && in.accelerate_configuration->status == "Suspended" && !before.status)
          in.accelerate_configuration->status.reset();
        return failure;
      });
  add_get<s3::GetBucketAccelerateConfiguration>(table, parts, Setting::acceleration,
                                                otherwise<s3::GetBucketAccelerateConfiguration>());
  add_put<s3::PutBucketRequestPayment>(
      table, parts, Setting::payment,
      [](s3::PutBucketRequestPaymentRequest&) { return std::optional<Failure>(); });
  add_get<s3::GetBucketRequestPayment>(
      table, parts, Setting::payment,
      otherwise<s3::GetBucketRequestPayment>({.payer = "BucketOwner"}));
}

}  // namespace

Result<void> put_ownership(BucketSettings& settings, const Principal& principal,
                           const std::string& bucket, const s3::OwnershipControls& controls) {
  const shapes::Shape& shape = *s3::PutBucketOwnershipControls::shape().input->payload->shape;
  return settings.put(principal, bucket, Setting::ownership, shape, &controls);
}

void add_settings(OperationTable& table, objects::Objects& objects, Random& random,
                  const SharedSettings& settings) {
  const Shared parts(new Parts{objects, random, settings});
  add_cors(table, parts);
  add_lifecycle(table, parts);
  add_public_access(table, parts);
  add_ownership(table, parts);
  add_encryption(table, parts);
  add_website(table, parts);
  add_others(table, parts);
}

}  // namespace trainyard::api::s3
