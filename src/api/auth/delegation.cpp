#include "auth/delegation.hpp"

#include "base/enum_table.hpp"
#include "base/json_record.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kTextBytesMax = 2048;  // of each text, as in session tokens

constexpr EnumTable<PrincipalKind> kKinds{"kind of principal",
                                          {{PrincipalKind::owner, "owner"},
                                           {PrincipalKind::user, "user"},
                                           {PrincipalKind::session, "session"}}};

Result<void> check_session(const RoleSession& session) {
  for (const std::string* text : {&session.role_arn, &session.session_name, &session.job_region,
                                  &session.job_name, &session.person, &session.source_identity})
    if (text->size() > kTextBytesMax)
      return invalid("a member of session is longer than " + std::to_string(kTextBytesMax) +
                     " bytes");
  if (session.policies.size() > kSessionPoliciesMax)
    return invalid("session.policies has " + std::to_string(session.policies.size()) +
                   " policies, more than " + std::to_string(kSessionPoliciesMax));
  for (const std::string& policy : session.policies)
    if (policy.size() > kTextBytesMax)
      return invalid("a policy of session is longer than " + std::to_string(kTextBytesMax) +
                     " bytes");
  if (session.role_arn.empty() || session.session_name.empty())
    return invalid("session must have role_arn and session_name");
  return {};
}

constexpr auto kSession = json_record<RoleSession>(
    "session",
    [](auto& side, auto& session) {
      side("role_arn", session.role_arn);
      side("session_name", session.session_name);
      side("job_region", session.job_region);
      side("job_name", session.job_name);
      side("job_number", session.job_number);
      side("attempt", session.attempt);
      side("assumed", session.assumed);
      side("person", session.person);
      side("source_identity", session.source_identity);
      side("policies", session.policies);
      side("limited", session.limited);
      side("issued", session.issued);
      side("expires", session.expires);
    },
    check_session);

Result<void> check_delegation(const Delegation& delegation) {
  for (const std::string* member : {&delegation.name, &delegation.id, &delegation.invoked_by,
                                    &delegation.peer_key_id, &delegation.source_ip})
    if (member->size() > kTextBytesMax)
      return invalid("a member of the principal is longer than " + std::to_string(kTextBytesMax) +
                     " bytes");
  if (delegation.name.empty()) return invalid("a principal must have kind and name");
  if (delegation.kind == PrincipalKind::session && delegation.session.role_arn.empty())
    return invalid("the principal must have a session");
  return {};
}

constexpr auto kDelegation = json_record<Delegation>(
    "principal",
    [](auto& side, auto& delegation) {
      side("kind", delegation.kind, kKinds);
      side("name", delegation.name);
      side("id", delegation.id);
      side("invoked_by", delegation.invoked_by);
      side("peer", delegation.peer_key_id);
      side("source_ip", delegation.source_ip);
      side("secure", delegation.secure);
      if (delegation.kind == PrincipalKind::session) side("session", delegation.session, kSession);
    },
    check_delegation);

}  // namespace

Delegation delegation_of(const Context& context) {
  const Principal& principal = context.principal;
  Delegation out{principal.kind, principal.name, principal.user_id};
  if (principal.session) out.session = *principal.session;
  out.invoked_by = principal.invoked_by;
  out.peer_key_id = principal.peer_key_id;
  out.source_ip = context.source_ip;
  out.secure = context.secure;
  return out;
}

Result<std::string> format_delegation(const Delegation& delegation) {
  std::string text = dump(kDelegation.write(delegation));
  if (text.size() > kDelegationBytesMax)
    return exhausted("the session's policies are too large for requests on its behalf: " +
                     human_bytes(text.size()) + " of " + human_bytes(kDelegationBytesMax));
  return text;
}

Result<Delegation> parse_delegation(std::string_view text) {
  if (text.size() > kDelegationBytesMax)
    return invalid("the principal's description has " + human_bytes(text.size()) + ", at most " +
                   human_bytes(kDelegationBytesMax) + " are allowed");
  const Json json = TRY(parse_json(text));
  if (!json.is_object()) return invalid("the principal's description must be an object");
  if (!json.contains("kind")) return invalid("a principal must have kind and name");
  return kDelegation.read(json);
}

}  // namespace trainyard::api
