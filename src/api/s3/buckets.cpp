// Implements the operations on buckets. Each bucket has a region, and all belong to the account.
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

constexpr std::string_view kFirstRegion = "us-east-1";  // its buckets have no location constraint

// Returns the region of a new bucket.
Outcome<std::string> region_for(const Context& context, const s3::CreateBucketRequest& in) {
  std::string requested;
  if (in.create_bucket_configuration)
    requested = in.create_bucket_configuration->location_constraint.value_or("");
  if (requested.empty()) return context.region;
  if (requested == "EU") requested = "eu-west-1";  // a legacy name
  // A request to us-east-1 may create a bucket in any region, a request to another region only
  // there.
  if (context.region != kFirstRegion && requested != context.region)
    return s3_failure(
        400, "IllegalLocationConstraintException",
        "The " + shorten(requested, 60) +
            " location constraint is incompatible for the region specific endpoint this "
            "request was sent to.");
  for (const char c : requested)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
      return s3_failure(400, "InvalidLocationConstraint",
                        "The specified location-constraint is not valid");
  return requested;
}

// Checks the members about access to a new bucket.
std::optional<Failure> check_access(const s3::CreateBucketRequest& in) {
  if (is_of_others(in.acl))
    return s3_failure(400, "InvalidBucketAclWithObjectOwnership",
                      "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced "
                      "setting");
  if (in.object_lock_enabled_for_bucket.value_or(false))
    return not_implemented(
        "A header you provided implies functionality that is not implemented: "
        "x-amz-bucket-object-lock");
  for (const std::string_view known :
       {"", "BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"})
    if (in.object_ownership.value_or("") == known) return std::nullopt;
  return invalid_argument("Invalid x-amz-object-ownership header: " +
                          shorten(*in.object_ownership, 60));
}

// Removes the policy and the settings of a bucket, which are not in the object store.
Result<void> forget_bucket(IdentityStore* identities, BucketSettings& settings,
                           const std::string& bucket) {
  TRY(remove_policy(identities, bucket));
  return settings.remove_all(bucket);
}

// `changes`: held while a bucket is created or deleted with its policy and settings, so that a
// deletion does not remove the policy of a bucket that another client has just created.
Outcome<s3::CreateBucketOutput> create_bucket(objects::Objects& objects, IdentityStore* identities,
                                              BucketSettings& settings, Mutex& changes,
                                              const Context& context,
                                              const s3::CreateBucketRequest& in) {
  const std::string& bucket = *in.bucket;
  if (auto failure = check_access(in)) return *failure;
  auto region = region_for(context, in);
  if (!region) return std::move(region).error();
  Tags tags;
  if (in.create_bucket_configuration) {
    auto read = read_bucket_tags(in.create_bucket_configuration->tags);
    if (!read) return std::move(read).error();
    tags = *std::move(read);
  }
  const MutexLock lock(changes);
  // If the store does not answer, the bucket may exist, so its policy and settings must stay.
  const auto before = objects.head_bucket(bucket);
  if (!before && !before.error().is(objects::Fault::bucket_missing))
    return s3_failure_of(before.error(), bucket, "");
  if (!before) TRY_S3(forget_bucket(identities, settings, bucket), bucket, "");
  // Stored before the bucket is created, so that an exceeded limit of settings leaves no bucket.
  const bool owned = !before && in.object_ownership && !in.object_ownership->empty();
  if (owned) {
    s3::OwnershipControls controls;
    controls.rules.emplace().push_back({.object_ownership = in.object_ownership});
    TRY_S3(put_ownership(settings, context.principal, bucket, controls), bucket, "");
  }
  const auto made = objects.create_bucket(bucket, *region);
  if (!made) {
    if (owned) TRY_S3(settings.remove(bucket, Setting::ownership), bucket, "");
    // As on S3, creating an existing bucket again in us-east-1 succeeds.
    const auto there = objects.head_bucket(bucket);
    const bool again = made.error().is(objects::Fault::bucket_exists) && there &&
                       there->region == kFirstRegion && context.region == kFirstRegion;
    if (!again) return s3_failure_of(made.error(), bucket, "");
  }
  if (made && !tags.empty()) TRY_S3(objects.set_bucket_tags(bucket, tags), bucket, "");
  return s3::CreateBucketOutput{.location = "/" + bucket};
}

Outcome<s3::ListBucketsOutput> list_buckets(objects::Objects& objects, const Context& context,
                                            const s3::ListBucketsRequest& in) {
  const auto all = TRY_S3(objects.list_buckets(), "", "");
  s3::ListBucketsOutput out;
  out.owner = s3::Owner{.id = context.principal.account};
  out.prefix = in.prefix;
  auto& buckets = out.buckets.emplace();
  const std::string after = in.continuation_token.value_or("");
  for (const auto& bucket : all) {
    if (in.prefix && !bucket.name.starts_with(*in.prefix)) continue;
    if (in.bucket_region && bucket.region != *in.bucket_region) continue;
    if (bucket.name <= after) continue;
    if (in.max_buckets && int64_t(buckets.size()) == *in.max_buckets) {
      if (!buckets.empty()) out.continuation_token = buckets.back().name;
      break;
    }
    buckets.push_back(
        {.name = bucket.name, .creation_date = bucket.created, .bucket_region = bucket.region});
  }
  return out;
}

Outcome<s3::GetBucketLocationOutput> get_bucket_location(objects::Objects& objects,
                                                         const Context& context,
                                                         const s3::GetBucketLocationRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  const auto info = TRY_S3(objects.head_bucket(*in.bucket), *in.bucket, "");
  s3::GetBucketLocationOutput out;
  if (info.region != kFirstRegion) out.location_constraint = info.region;
  return out;
}

}  // namespace

void add_buckets(OperationTable& table, objects::Objects& objects, IdentityStore* identities,
                 const SharedSettings& settings) {
  const auto changes = std::make_shared<Mutex>();
  table.add<s3::CreateBucket>([&objects, identities, settings, changes](
                                  const Context& context, const s3::CreateBucketRequest& in) {
    return create_bucket(objects, identities, *settings, *changes, context, in);
  });
  table.add<s3::ListBuckets>([&](const Context& context, const s3::ListBucketsRequest& in) {
    return list_buckets(objects, context, in);
  });
  table.add<s3::GetBucketLocation>(
      [&](const Context& context, const s3::GetBucketLocationRequest& in) {
        return get_bucket_location(objects, context, in);
      });
  table.add<s3::HeadBucket>([&](const Context& context,
                                const s3::HeadBucketRequest& in) -> Outcome<s3::HeadBucketOutput> {
    if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
    const auto info = TRY_S3(objects.head_bucket(*in.bucket), *in.bucket, "");
    return s3::HeadBucketOutput{.bucket_region = info.region, .access_point_alias = false};
  });
  table.add<s3::DeleteBucket>(
      [&objects, identities, settings, changes](
          const Context& context, const s3::DeleteBucketRequest& in) -> Outcome<s3::Nothing> {
        if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
        const MutexLock lock(*changes);
        TRY_S3(objects.delete_bucket(*in.bucket), *in.bucket, "");
        TRY_S3(forget_bucket(identities, *settings, *in.bucket), *in.bucket, "");
        return s3::Nothing{};
      });
}

}  // namespace trainyard::api::s3
