#include "auth/delegation.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "domain/json_fields.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kTextBytesMax = 2048;  // of each text, as in session tokens

std::string_view to_string(PrincipalKind kind) {
  switch (kind) {
    case PrincipalKind::owner:
      return "owner";
    case PrincipalKind::user:
      return "user";
    case PrincipalKind::session:
      return "session";
  }
  return "";
}

Result<PrincipalKind> parse_kind(std::string_view text) {
  for (const auto kind : {PrincipalKind::owner, PrincipalKind::user, PrincipalKind::session})
    if (text == to_string(kind)) return kind;
  return invalid("unknown kind of principal '" + shorten(text, 40) + "'");
}

Json to_json(const RoleSession& session) {
  return {{"role_arn", session.role_arn},
          {"session_name", session.session_name},
          {"job_region", session.job_region},
          {"job_name", session.job_name},
          {"job_number", session.job_number},
          {"attempt", session.attempt},
          {"assumed", session.assumed},
          {"person", session.person},
          {"source_identity", session.source_identity},
          {"policies", session.policies},
          {"limited", session.limited},
          {"issued", to_milliseconds(session.issued)},
          {"expires", to_milliseconds(session.expires)}};
}

Result<RoleSession> session_from_json(const Json& json) {
  RoleSession session;
  domain::Fields fields(json, "session");
  fields.read("role_arn", session.role_arn)
      .read("session_name", session.session_name)
      .read("job_region", session.job_region)
      .read("job_name", session.job_name)
      .read("job_number", session.job_number)
      .read("attempt", session.attempt)
      .read("assumed", session.assumed)
      .read("person", session.person)
      .read("source_identity", session.source_identity)
      .read("policies", session.policies)
      .read("limited", session.limited)
      .read("issued", session.issued)
      .read("expires", session.expires);
  TRY(fields.result());
  for (const std::string* text : {&session.role_arn, &session.session_name, &session.job_region,
                                  &session.job_name, &session.person, &session.source_identity})
    if (text->size() > kTextBytesMax) return invalid("a member of session is longer than 2048 bytes");
  if (session.policies.size() > kSessionPoliciesMax) return invalid("session.policies has too many policies");
  for (const std::string& policy : session.policies)
    if (policy.size() > kTextBytesMax) return invalid("a policy of session is longer than 2048 bytes");
  if (session.role_arn.empty() || session.session_name.empty())
    return invalid("session must have role_arn and session_name");
  return session;
}

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
  Json json{{"kind", to_string(delegation.kind)},
            {"name", delegation.name},
            {"id", delegation.id},
            {"invoked_by", delegation.invoked_by},
            {"peer", delegation.peer_key_id},
            {"source_ip", delegation.source_ip},
            {"secure", delegation.secure}};
  if (delegation.kind == PrincipalKind::session) json["session"] = to_json(delegation.session);
  std::string text = dump(json);
  if (text.size() > kDelegationBytesMax)
    return exhausted("the session's policies are too large for requests on its behalf: " +
                     human_bytes(text.size()) + " of " + human_bytes(kDelegationBytesMax));
  return text;
}

Result<Delegation> parse_delegation(std::string_view text) {
  if (text.size() > kDelegationBytesMax) return invalid("the principal's description is too long");
  const Json json = TRY(parse_json(text));
  if (!json.is_object()) return invalid("the principal's description must be an object");
  Delegation out;
  domain::Fields fields(json, "principal");
  fields.read("kind", out.kind, parse_kind)
      .read("name", out.name)
      .read("id", out.id)
      .read("invoked_by", out.invoked_by)
      .read("peer", out.peer_key_id)
      .read("source_ip", out.source_ip)
      .read("secure", out.secure);
  if (out.kind == PrincipalKind::session) fields.read("session", out.session, session_from_json);
  TRY(fields.result());
  for (const std::string* member : {&out.name, &out.id, &out.invoked_by, &out.peer_key_id, &out.source_ip})
    if (member->size() > kTextBytesMax) return invalid("a member of the principal is longer than 2048 bytes");
  if (!json.contains("kind") || out.name.empty()) return invalid("a principal must have kind and name");
  if (out.kind == PrincipalKind::session && out.session.role_arn.empty())
    return invalid("the principal must have a session");
  return out;
}

}  // namespace trainyard::api
