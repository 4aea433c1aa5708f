// Implements the operations on bucket policies. The ledger stores the policies like users and
// roles, and the authorizer evaluates them.
#include "policy/bucket_policy.hpp"

#include "base/text.hpp"
#include "operations/identity_store.hpp"
#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

Failure no_policy(const std::string& bucket) {
  Failure failure = s3_failure(404, "NoSuchBucketPolicy", "The bucket policy does not exist");
  failure.resource = bucket;
  return failure;
}

// Returns whether the bucket's public access block refuses public policies.
bool blocks_public_policies(const BucketSettings& settings, const std::string& bucket) {
  s3::PublicAccessBlockConfiguration block;
  const shapes::Shape& shape = *s3::PutPublicAccessBlock::shape().input->payload->shape;
  return settings.read(bucket, Setting::public_access, shape, &block) &&
         block.block_public_policy.value_or(false);
}

Outcome<s3::Nothing> put_policy(objects::Objects& objects, IdentityStore& identities,
                                const BucketSettings& settings, const Context& context,
                                const s3::PutBucketPolicyRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  TRY_S3(objects.head_bucket(*in.bucket), *in.bucket, "");
  const std::string& text = *in.policy;
  if (policy::policy_size(text) > policy::kBucketPolicyBytesMax)
    return s3_failure(400, "MalformedPolicy",
                      "Policies must not be larger than " +
                          std::to_string(policy::kBucketPolicyBytesMax) + " bytes");
  auto parsed = policy::parse_bucket_policy(text, *in.bucket, *identities.snapshot());
  if (!parsed) return s3_failure(400, "MalformedPolicy", parsed.error().message);
  if (policy::is_public(**parsed) && blocks_public_policies(settings, *in.bucket))
    return access_denied(s3::kService,
                         "User: " + context.principal.arn +
                             " is not authorized to perform: s3:PutBucketPolicy on resource: "
                             "\"arn:aws:s3:::" +
                             *in.bucket +
                             "\" because public policies are prevented by the BlockPublicPolicy "
                             "setting in S3 Block Public Access.");
  TRY_S3(identities.change([&](policy::Identities& all) -> Result<void> {
    all.put(policy::BucketPolicy{*in.bucket, {text, *parsed}});
    return ok();
  }),
         *in.bucket, "");
  return s3::Nothing{};
}

// Finds the policy of a bucket in a snapshot, which must outlive it.
Outcome<const policy::BucketPolicy*> find_policy(objects::Objects& objects,
                                                 const policy::Identities& all,
                                                 const Context& context, const std::string& bucket,
                                                 const std::optional<std::string>& expected_owner) {
  if (auto failure = check_owner(context, expected_owner)) return *failure;
  TRY_S3(objects.head_bucket(bucket), bucket, "");
  const auto* found = all.find_bucket_policy(bucket);
  if (!found) return no_policy(bucket);
  return found;
}

Outcome<s3::GetBucketPolicyOutput> get_policy(objects::Objects& objects, IdentityStore& identities,
                                              const Context& context,
                                              const s3::GetBucketPolicyRequest& in) {
  const auto all = identities.snapshot();
  auto found = find_policy(objects, *all, context, *in.bucket, in.expected_bucket_owner);
  if (!found) return std::move(found).error();
  return s3::GetBucketPolicyOutput{.policy = (*found)->document.text};
}

Outcome<s3::GetBucketPolicyStatusOutput> get_status(objects::Objects& objects,
                                                    IdentityStore& identities,
                                                    const Context& context,
                                                    const s3::GetBucketPolicyStatusRequest& in) {
  const auto all = identities.snapshot();
  auto found = find_policy(objects, *all, context, *in.bucket, in.expected_bucket_owner);
  if (!found) return std::move(found).error();
  s3::GetBucketPolicyStatusOutput out;
  out.policy_status.emplace().is_public = policy::is_public(*(*found)->document.policy);
  return out;
}

Outcome<s3::Nothing> delete_policy(objects::Objects& objects, IdentityStore& identities,
                                   const Context& context,
                                   const s3::DeleteBucketPolicyRequest& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return *failure;
  TRY_S3(objects.head_bucket(*in.bucket), *in.bucket, "");
  TRY_S3(remove_policy(&identities, *in.bucket), *in.bucket, "");
  return s3::Nothing{};
}

}  // namespace

Result<void> remove_policy(IdentityStore* identities, const std::string& bucket) {
  if (!identities || !identities->snapshot()->find_bucket_policy(bucket)) return ok();
  return identities->change([&](policy::Identities& all) -> Result<void> {
    all.remove_bucket_policy(bucket);
    return ok();
  });
}

void add_policies(OperationTable& table, objects::Objects& objects, IdentityStore* identities,
                  const SharedSettings& settings) {
  if (!identities) return;
  table.add<s3::PutBucketPolicy>([&objects, identities, settings](
                                     const Context& context, const s3::PutBucketPolicyRequest& in) {
    return put_policy(objects, *identities, *settings, context, in);
  });
  table.add<s3::GetBucketPolicy>(
      [&objects, identities](const Context& context, const s3::GetBucketPolicyRequest& in) {
        return get_policy(objects, *identities, context, in);
      });
  table.add<s3::GetBucketPolicyStatus>(
      [&objects, identities](const Context& context, const s3::GetBucketPolicyStatusRequest& in) {
        return get_status(objects, *identities, context, in);
      });
  table.add<s3::DeleteBucketPolicy>(
      [&objects, identities](const Context& context, const s3::DeleteBucketPolicyRequest& in) {
        return delete_policy(objects, *identities, context, in);
      });
}

}  // namespace trainyard::api::s3
