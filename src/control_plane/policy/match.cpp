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
  // A variable without a value is like no resource: "all but it" denies everything, but allows
  // nothing.
  return !unknown || statement.effect == Effect::deny;
}

Grant match_everyone(const RequestView& view) {
  return view.request.role_arn.empty() ? Grant::direct : Grant::role;
}

Grant match_listed(const RequestView& view, const PrincipalSet& set) {
  const Request& request = view.request;
  if (contains(set.arns, request.principal_arn) || contains(set.services, request.service) ||
      contains(set.federated, request.federated))
    return Grant::direct;
  if (view.is_root && contains(set.accounts, request.account)) return Grant::direct;
  if (contains(set.arns, request.role_arn)) return Grant::role;
  if (set.everyone) return match_everyone(view);
  return contains(set.accounts, request.account) ? Grant::account : Grant::none;
}

Grant match_principal(const RequestView& view, const Statement& statement) {
  if (!statement.principal) return Grant::direct;
  const Grant listed = match_listed(view, *statement.principal);
  if (!statement.not_principal) return listed;
  // An account in NotPrincipal excepts its root only, as on AWS; a role excepts its sessions.
  return listed > Grant::account ? Grant::none : match_everyone(view);
}

}  // namespace

RequestView::RequestView(const Request& request)
    : request(request),
      action(to_lower(request.action)),
      is_root(!request.account.empty() && request.principal_arn.ends_with(":root") &&
              request.role_arn.empty()) {}

Grant match_statement(const RequestView& view, const Statement& statement) {
  if (!match_action(view, statement) || !match_resource(view, statement)) return Grant::none;
  const Grant grant = match_principal(view, statement);
  if (grant == Grant::none) return grant;
  const bool denies = statement.effect == Effect::deny;
  for (const Condition& condition : statement.conditions)
    if (!condition.holds(view.request.values, denies)) return Grant::none;
  return grant;
}

}  // namespace trainyard::policy
