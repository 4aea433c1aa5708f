#include "policy/evaluate.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "policy/match.hpp"

namespace trainyard::policy {
namespace {

constexpr std::string_view kIdentity = "identity-based policy", kResource = "resource-based policy",
                           kSession = "session policy", kBoundary = "permissions boundary",
                           kTrust = "role trust policy";

// The first statement of a set of policies that denies, and the statement that allows and names the
// principal most directly.
struct Found {
  const Statement* deny = nullptr;
  const Statement* allow = nullptr;
  PrincipalMatch match = PrincipalMatch::none;
};

Found scan(const RequestView& request, std::span<const Policy* const> policies) {
  Found found;
  for (const Policy* policy : policies)
    for (const Statement& statement : policy->statements()) {
      // After a direct match, no other Allow can be more direct.
      if (statement.effect == Effect::allow && found.match == PrincipalMatch::direct) continue;
      const PrincipalMatch match = match_statement(request, statement);
      if (match == PrincipalMatch::none) continue;
      if (statement.effect == Effect::deny) {
        found.deny = &statement;
        return found;
      }
      if (match > found.match) {
        found.match = match;
        found.allow = &statement;
      }
    }
  return found;
}

Decision decide(Verdict verdict, std::string_view reason, const Statement* statement) {
  return {verdict, reason, statement ? statement->sid : std::string()};
}

bool has_trust_policy(const Policies& policies) {
  return std::ranges::any_of(
      policies.resource, [](const Policy* policy) { return policy->kind() == PolicyKind::trust; });
}

}  // namespace

Decision evaluate(const Request& request, const Policies& policies) {
  const RequestView view(request);
  const bool trust = has_trust_policy(policies);
  const std::string_view resource_type = trust ? kTrust : kResource;

  const Found resource = scan(view, policies.resource);
  const Found identity = scan(view, policies.identity);
  const Found session = policies.session ? scan(view, *policies.session) : Found{};
  const Found boundary = policies.boundary ? scan(view, {&policies.boundary, 1}) : Found{};
  if (identity.deny) return decide(Verdict::explicitly_denied, kIdentity, identity.deny);
  if (resource.deny) return decide(Verdict::explicitly_denied, resource_type, resource.deny);
  if (session.deny) return decide(Verdict::explicitly_denied, kSession, session.deny);
  if (boundary.deny) return decide(Verdict::explicitly_denied, kBoundary, boundary.deny);

  if (resource.match == PrincipalMatch::direct)
    return decide(Verdict::allowed, resource_type, resource.allow);
  if (trust && resource.match == PrincipalMatch::none)
    return decide(Verdict::implicitly_denied, kTrust, nullptr);
  const bool by_role = resource.match == PrincipalMatch::role;
  if (!by_role && !identity.allow) return decide(Verdict::implicitly_denied, kIdentity, nullptr);
  if (policies.boundary && !boundary.allow)
    return decide(Verdict::implicitly_denied, kBoundary, nullptr);
  if (policies.session && !session.allow)
    return decide(Verdict::implicitly_denied, kSession, nullptr);
  if (identity.allow) return decide(Verdict::allowed, kIdentity, identity.allow);
  return decide(Verdict::allowed, resource_type, resource.allow);
}

std::string describe_denial(const Request& request, const Decision& decision) {
  CHECK(decision.verdict != Verdict::allowed, "describe_denial() requires a denial");
  const std::string_view principal = !request.principal_arn.empty() ? request.principal_arn
                                     : !request.service.empty() ? std::string_view(request.service)
                                     : !request.federated.empty()
                                         ? std::string_view(request.federated)
                                         : "anonymous";
  std::string text = "User: ";
  text.append(principal).append(" is not authorized to perform: ").append(request.action);
  text.append(" on resource: ").append(request.resource);
  const std::string type(decision.reason_policy_type);
  if (decision.verdict == Verdict::explicitly_denied)
    return text + " with an explicit deny in " + (type.starts_with('i') ? "an " : "a ") + type;
  return text + " because no " + type + " allows the " + request.action + " action";
}

}  // namespace trainyard::policy
