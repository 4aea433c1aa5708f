#include "policy/match.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::policy {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return !text.empty() && std::ranges::find(list, text) != list.end();
}

bool match_action(const RequestView& view, const Statement& statement) {
  for (const Pattern& pattern : statement.actions)
    if (*pattern.match(view.action, view.request.values)) return !statement.not_action;
  return statement.not_action;
}

bool match_resource(const RequestView& view, const Statement& statement) {
  if (statement.resources.empty()) return true;
  bool unknown = false;
  for (const Pattern& pattern : statement.resources) {
    const auto matched = pattern.match(view.request.resource, view.request.values);
    if (!matched) unknown = true;
    if (matched && *matched) return !statement.not_resource;
  }
  if (!statement.not_resource) return false;
  // A resource with a variable without a value matches nothing. So a Deny with NotResource applies
  // to every resource; an Allow with NotResource applies to none.
  return !unknown || statement.effect == Effect::deny;
}

PrincipalMatch match_everyone(const RequestView& view) {
  return view.request.role_arn.empty() ? PrincipalMatch::direct : PrincipalMatch::role;
}

PrincipalMatch match_listed(const RequestView& view, const PrincipalSet& set) {
  const Request& request = view.request;
  if (contains(set.arns, request.principal_arn) || contains(set.services, request.service) ||
      contains(set.federated, request.federated))
    return PrincipalMatch::direct;
  if (view.is_root && contains(set.accounts, request.account)) return PrincipalMatch::direct;
  if (contains(set.arns, request.role_arn)) return PrincipalMatch::role;
  if (set.everyone) return match_everyone(view);
  return contains(set.accounts, request.account) ? PrincipalMatch::account : PrincipalMatch::none;
}

PrincipalMatch match_principal(const RequestView& view, const Statement& statement) {
  if (!statement.principal) return PrincipalMatch::direct;
  const PrincipalMatch listed = match_listed(view, *statement.principal);
  if (!statement.not_principal) return listed;
  // As on AWS, an account in NotPrincipal excepts only its root; a role excepts its sessions.
  return listed > PrincipalMatch::account ? PrincipalMatch::none : match_everyone(view);
}

}  // namespace

RequestView::RequestView(const Request& request)
    : request(request),
      action(to_lower(request.action)),
      is_root(!request.account.empty() && request.principal_arn.ends_with(":root") &&
              request.role_arn.empty()) {}

PrincipalMatch match_statement(const RequestView& view, const Statement& statement) {
  if (!match_action(view, statement) || !match_resource(view, statement))
    return PrincipalMatch::none;
  const PrincipalMatch match = match_principal(view, statement);
  if (match == PrincipalMatch::none) return match;
  const bool denies = statement.effect == Effect::deny;
  for (const Condition& condition : statement.conditions)
    if (!condition.holds(view.request.values, denies)) return PrincipalMatch::none;
  return match;
}

}  // namespace trainyard::policy
