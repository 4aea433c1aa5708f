// Implements the operations of STS: the caller's identity, and temporary keys of roles.
#include "shapes/sts.hpp"
#include "auth/roles.hpp"
#include "auth/temporary_keys.hpp"
#include "base/text.hpp"
#include "iam/operations.hpp"
#include "policy/policy.hpp"

namespace trainyard::api::iam {
namespace {

namespace sts = shapes::sts;

constexpr int64_t kSessionSecondsDefault = 3600, kSessionSecondsMax = 43200;
constexpr int64_t kChainedSecondsMax = 3600;  // of a session assumed by a session, as on AWS
constexpr size_t kSessionPolicyArnsMax = 10;

// Reads session policies, which limit the rights of the session. Errors: those of IAM.
Outcome<std::vector<std::string>> session_policies(const Settings& settings,
                                                   const sts::AssumeRoleRequest& in) {
  std::vector<std::string> policies;
  if (in.policy) {
    if (policy::policy_size(*in.policy) > policy::kSessionPolicyBytesMax ||
        in.policy->size() > policy::kSessionPolicyBytesMax)
      return Failure{
          400, "PackedPolicyTooLarge",
          "Policy must be at most " + std::to_string(policy::kSessionPolicyBytesMax) + " bytes"};
    const auto parsed = policy::parse_policy(*in.policy, policy::PolicyKind::identity);
    if (!parsed) return Failure{400, "MalformedPolicyDocument", parsed.error().message};
    policies.push_back(*in.policy);
  }
  const auto arns = in.policy_arns.value_or(std::vector<sts::PolicyDescriptorType>());
  if (arns.size() > kSessionPolicyArnsMax)
    return invalid("PolicyArns may have at most " + std::to_string(kSessionPolicyArnsMax) +
                   " policies");
  for (const auto& each : arns) {
    const std::string arn = each.arn.value_or("");
    const auto* managed = settings.identities ? settings.identities()->find_policy(arn) : nullptr;
    if (!managed)
      return no_such_entity("Policy " + shorten(arn, 200) +
                            " does not exist or is not attachable.");
    policies.push_back(arn);
  }
  return policies;
}

// Makes the session that the caller assumes. It inherits the person, the job's attempt and the
// source identity from the caller's session.
Outcome<RoleSession> new_session(const Settings& settings, const Context& context,
                                 const sts::AssumeRoleRequest& in) {
  const Principal& caller = context.principal;
  RoleSession session{.role_arn = *in.role_arn, .session_name = *in.role_session_name};
  if (caller.session) {
    session = *caller.session;
    session.role_arn = *in.role_arn;
    session.session_name = *in.role_session_name;
  }
  session.assumed = true;
  session.person = caller.name;
  if (in.source_identity && !session.source_identity.empty() &&
      *in.source_identity != session.source_identity)
    return denied("User: " + caller.arn +
                  " is not authorized to perform: sts:SetSourceIdentity on resource: " +
                  *in.role_arn + " because the source identity of a session cannot be changed");
  if (in.source_identity) session.source_identity = *in.source_identity;
  session.limited = in.policy || (in.policy_arns && !in.policy_arns->empty());
  session.policies = TRY(session_policies(settings, in));
  return session;
}

Outcome<sts::AssumeRoleResponse> assume_role(const Settings& settings, const Services& services,
                                             const Context& context,
                                             const sts::AssumeRoleRequest& in) {
  auto role = role_of_arn(*in.role_arn, context.principal.account);
  if (!role && role.error().kind == Kind::not_found)
    return denied("User: " + context.principal.arn +
                  " is not authorized to perform: sts:AssumeRole on resource: " + *in.role_arn);
  if (!role) return role.error();
  const RoleSession session = TRY(new_session(settings, context, in));
  int64_t seconds_max = kSessionSecondsMax;
  std::string id = role_id(*role);
  if (settings.identities)
    if (const auto identities = settings.identities();
        const auto* defined = identities->find_role(*role)) {
      seconds_max = defined->max_session_seconds;
      id = defined->id;
    }
  const int64_t seconds = in.duration_seconds.value_or(kSessionSecondsDefault);
  if (context.principal.session && seconds > kChainedSecondsMax)
    return validation(sts::kService,
                      "The requested DurationSeconds exceeds the 1 hour session limit for roles "
                      "assumed by role chaining");
  if (seconds > seconds_max)
    return validation(
        sts::kService,
        "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.");
  auto keys = issue_keys(settings.temporary_key_secret, session, context.now,
                         std::chrono::seconds(seconds), services.random);
  sts::AssumeRoleResponse out;
  out.credentials = sts::Credentials{.access_key_id = std::move(keys.access_key_id),
                                     .secret_access_key = std::move(keys.secret_access_key),
                                     .session_token = std::move(keys.session_token),
                                     .expiration = keys.expires};
  out.assumed_role_user = sts::AssumedRoleUser{
      .assumed_role_id = id + ":" + *in.role_session_name,
      .arn = assumed_role_arn(context.principal.account, *role, *in.role_session_name)};
  return out;
}

}  // namespace

void add_sts(OperationTable& table, const Settings& settings, const Services& services) {
  table.add_quick<sts::GetCallerIdentity>(
      [](const Context& context,
         const sts::GetCallerIdentityRequest&) -> Outcome<sts::GetCallerIdentityResponse> {
        return sts::GetCallerIdentityResponse{.user_id = context.principal.user_id,
                                              .account = context.principal.account,
                                              .arn = context.principal.arn};
      });
  table.add_quick<sts::AssumeRole>([&](const Context& context, const sts::AssumeRoleRequest& in) {
    return assume_role(settings, services, context, in);
  });
}

}  // namespace trainyard::api::iam
