#include "policy/bucket_policy.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "policy/statement.hpp"

namespace trainyard::policy {
namespace {

constexpr std::string_view kBucketArn = "arn:aws:s3:::", kS3 = "s3:";

// Returns whether a resource can only match the bucket and its objects. A variable or wildcard in
// the name of the bucket could match another bucket.
bool is_within_bucket(const Pattern& resource, std::string_view bucket) {
  std::string_view text = resource.text();
  if (!text.starts_with(kBucketArn)) return false;
  text.remove_prefix(kBucketArn.size());
  return text.starts_with(bucket) && (text.size() == bucket.size() || text[bucket.size()] == '/');
}

// Returns whether the principal of an ARN may exist. For users, such as "ann" in
// "arn:aws:iam::ACCOUNT:user/lab/ann", the name is looked up.
bool is_known(std::string_view arn, const Identities& identities) {
  const auto parts = split(arn, ':');
  if (parts.size() < 6 || parts[4] != identities.account()) return false;
  const std::string_view name = parts[5].substr(parts[5].rfind('/') + 1);
  return !parts[5].starts_with("user/") || identities.find_user(name) != nullptr;
}

Result<void> check(const Statement& statement, std::string_view bucket,
                   const Identities& identities) {
  for (const Pattern& action : statement.actions)
    if (!action.text().starts_with(kS3) && action.text() != std::string(1, kAnyMany))
      return invalid("Policy has invalid action");
  for (const Pattern& resource : statement.resources)
    if (!is_within_bucket(resource, bucket)) return invalid("Policy has invalid resource");
  if (!statement.principal) return ok();
  const PrincipalSet& principals = *statement.principal;
  const bool known =
      principals.federated.empty() &&
      std::ranges::all_of(principals.accounts,
                          [&](const auto& account) { return account == identities.account(); }) &&
      std::ranges::all_of(principals.arns,
                          [&](const auto& arn) { return is_known(arn, identities); });
  if (!known) return invalid("Invalid principal in policy");
  return ok();
}

}  // namespace

Result<std::shared_ptr<const Policy>> parse_bucket_policy(std::string_view json,
                                                          std::string_view bucket,
                                                          const Identities& identities) {
  auto policy = TRY(parse_policy(json, PolicyKind::resource));
  for (const Statement& statement : policy->statements()) TRY(check(statement, bucket, identities));
  return policy;
}

bool is_public(const Policy& policy) {
  return std::ranges::any_of(policy.statements(), [](const Statement& statement) {
    const bool everyone =
        statement.principal && (statement.principal->everyone || statement.not_principal);
    return statement.effect == Effect::allow && everyone &&
           std::ranges::none_of(statement.conditions, &Condition::limits_callers);
  });
}

}  // namespace trainyard::policy
