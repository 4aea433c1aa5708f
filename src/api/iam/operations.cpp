// Registers IAM's and STS's operations, by subject, and implements the functions that they share.
#include <numeric>

#include "auth/roles.hpp"
#include "base/text.hpp"
#include "iam/common.hpp"
#include "policy/identity_seed.hpp"

namespace trainyard::api::iam {

Failure iam_failure(const Error& error, bool of_removal) {
  switch (error.kind) {
    case Kind::not_found:
      return no_such_entity(error.message);
    case Kind::conflict:
      return {409, of_removal ? "DeleteConflict" : "EntityAlreadyExists", error.message};
    case Kind::exhausted:
      return {409, "LimitExceeded", error.message};
    case Kind::invalid:
      return invalid_input(error.message);
    case Kind::denied:
      return {400, "UnmodifiableEntity", error.message};
    default:
      return failure_of(iam::kService, error);
  }
}

Outcome<policy::Document> document_in(const std::string& text, policy::PolicyKind kind,
                                      size_t bytes_max) {
  auto parsed = policy::parse_policy(text, kind);
  if (!parsed) return Failure{400, "MalformedPolicyDocument", parsed.error().message};
  if (policy::policy_size(text) > bytes_max)
    return Failure{409, "LimitExceeded",
                   "Cannot exceed quota for PolicySize: " + std::to_string(bytes_max)};
  return policy::Document{text, *std::move(parsed)};
}

Result<PageOrder> page_order(std::vector<std::string> keys,
                             const std::optional<std::string>& marker, size_t max) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const auto key_at = [&](size_t at) -> const std::string& { return keys[at]; };
  std::ranges::stable_sort(order, {}, key_at);
  auto first = order.begin();
  if (marker) {
    first = std::ranges::upper_bound(order, *marker, {}, key_at);
    if (first == order.begin() && !order.empty() && *marker < key_at(order.front()))
      return invalid("Invalid Marker: use the Marker of the list's previous page");
  }
  const auto count = std::min<ptrdiff_t>(ptrdiff_t(max), order.end() - first);
  return PageOrder{{first, first + count}, first + count != order.end()};
}

bool has_prefix(const std::string& path, const std::optional<std::string>& prefix) {
  return !prefix || path.starts_with(*prefix);
}

std::optional<std::vector<iam::Tag>> shown_tags(const std::vector<policy::Tag>& tags) {
  if (tags.empty()) return std::nullopt;
  std::vector<iam::Tag> shown;
  for (const auto& tag : tags) shown.push_back({.key = tag.key, .value = tag.value});
  return shown;
}

std::vector<policy::Tag> tags_in(const std::optional<std::vector<iam::Tag>>& tags) {
  std::vector<policy::Tag> read;
  if (tags)
    for (const auto& tag : *tags) read.push_back({*tag.key, *tag.value});
  return read;
}

std::optional<iam::AttachedPermissionsBoundary> shown_boundary(const policy::Entity& entity) {
  if (entity.boundary.empty()) return std::nullopt;
  return iam::AttachedPermissionsBoundary{.permissions_boundary_type = "PermissionsBoundaryPolicy",
                                          .permissions_boundary_arn = entity.boundary};
}

policy::Role undefined_role(const std::string& account, const std::string& name) {
  policy::Role role;
  role.name = name;
  role.id = role_id(name);
  role.from_config = true;
  role.description = "Not defined: its sessions may do what the job that uses them needs.";
  role.max_session_seconds = 43'200;  // as for AssumeRole
  role.trust.text = policy::built_in_trust(account);
  role.trust.policy = policy::parse_policy(role.trust.text, policy::PolicyKind::trust).value();
  return role;
}

policy::Role role_or_undefined(const Identities& identities, const std::string& name) {
  const policy::Role* role = identities.find_role(name);
  return role ? *role : undefined_role(identities.account(), name);
}

void add_operations(OperationTable& table, const Settings& settings, const Services& services) {
  add_users(table, services);
  add_keys(table, services);
  add_roles(table, services);
  add_instance_profiles(table, services);
  add_entity_policies(table, services);
  add_managed_policies(table, services);
  add_simulation(table, services);
  add_sts(table, settings, services);
}

}  // namespace trainyard::api::iam
