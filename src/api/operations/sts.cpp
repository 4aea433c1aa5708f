// Who am I, and who else may I be: what clients ask first.
#include "api/shapes/sts.hpp"
#include "api/auth/roles.hpp"
#include "api/auth/temporary_keys.hpp"
#include "api/operations/operations.hpp"

namespace trainyard::api {
namespace {

namespace sts = shapes::sts;

constexpr int64_t kSessionSecondsDefault = 3600;

Outcome<sts::AssumeRoleResponse> assume_role(const Settings& settings, const Services& services,
                                             const Context& context, const sts::AssumeRoleRequest& in) {
  // A session that may do less than its role: nobody would hold it to that here.
  if (in.policy || (in.policy_arns && !in.policy_arns->empty()))
    return invalid(
        "Policy and PolicyArns are not supported by this server: sessions may do what their role may");
  auto role = role_of_arn(*in.role_arn, context.principal.account);
  if (!role && role.error().kind == Kind::not_found)
    return denied("User: " + context.principal.arn +
                  " is not authorized to perform: sts:AssumeRole on resource: " + *in.role_arn);
  if (!role) return role.error();
  const Duration lifetime = std::chrono::seconds(in.duration_seconds.value_or(kSessionSecondsDefault));
  auto keys = issue_keys(settings.temporary_key_secret, {*in.role_arn, *in.role_session_name}, context.now,
                         lifetime, services.random);
  sts::AssumeRoleResponse out;
  out.credentials = sts::Credentials{.access_key_id = std::move(keys.access_key_id),
                                     .secret_access_key = std::move(keys.secret_access_key),
                                     .session_token = std::move(keys.session_token),
                                     .expiration = keys.expires};
  out.assumed_role_user =
      sts::AssumedRoleUser{.assumed_role_id = role_id(*role) + ":" + *in.role_session_name,
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

}  // namespace trainyard::api
