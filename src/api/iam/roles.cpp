// Implements the operations on roles. An undefined role is described as the built-in role
// (auth/README.md).
#include "auth/roles.hpp"
#include "base/text.hpp"
#include "iam/common.hpp"

namespace trainyard::api::iam {
namespace {

using policy::Role;

Outcome<iam::CreateRoleResponse> create_role(IdentityStore& store, Identities& next,
                                             const Context& context,
                                             const iam::CreateRoleRequest& in) {
  Role role;
  role.name = *in.role_name;
  role.path = in.path.value_or("/");
  role.id = store.make_id("AROA");
  role.created = context.now;
  role.tags = tags_in(in.tags);
  role.boundary = in.permissions_boundary.value_or("");
  role.description = in.description.value_or("");
  role.max_session_seconds = in.max_session_duration.value_or(role.max_session_seconds);
  role.trust = TRY(document_in(*in.assume_role_policy_document, policy::PolicyKind::trust,
                               policy::kTrustPolicyBytesMax));
  TRY(policy::add_role(next, std::move(role)));
  return iam::CreateRoleResponse{.role = shown_role(next, *next.find_role(*in.role_name), true)};
}

Result<iam::ListRolesResponse> list_roles(const Identities& identities, const Context&,
                                          const iam::ListRolesRequest& in) {
  std::vector<iam::Role> all;
  for (const auto& [name, role] : identities.roles())
    if (has_prefix(role->path, in.path_prefix)) all.push_back(shown_role(identities, *role, false));
  iam::ListRolesResponse out;
  out.roles = TRY(page_of(
      in, std::move(all), [](const iam::Role& role) { return *role.role_name; }, out));
  return out;
}

void add_role_changes(OperationTable& table, const Services& services) {
  add_edit<iam::UpdateRole>(
      table, services, false,
      [](Identities& next, const Context&,
         const iam::UpdateRoleRequest& in) -> Outcome<iam::UpdateRoleResponse> {
        TRY(policy::update_role(next, *in.role_name, in.description, in.max_session_duration));
        return iam::UpdateRoleResponse{};
      });
  add_edit<iam::UpdateAssumeRolePolicy>(
      table, services, false,
      [](Identities& next, const Context&, const iam::UpdateAssumeRolePolicyRequest& in)
          -> Outcome<iam::UpdateAssumeRolePolicy::Output> {
        auto trust = TRY(document_in(*in.policy_document, policy::PolicyKind::trust,
                                     policy::kTrustPolicyBytesMax));
        TRY(policy::set_trust(next, *in.role_name, std::move(trust)));
        return iam::UpdateAssumeRolePolicy::Output{};
      });
  add_change<iam::DeleteRole>(table, services,
                              [](Identities& next, const iam::DeleteRoleRequest& in) {
                                return policy::remove_role(next, *in.role_name);
                              });
  add_change<iam::PutRolePermissionsBoundary>(
      table, services, [](Identities& next, const iam::PutRolePermissionsBoundaryRequest& in) {
        return policy::set_boundary(next, EntityKind::role, *in.role_name,
                                    *in.permissions_boundary);
      });
  add_change<iam::DeleteRolePermissionsBoundary>(
      table, services, [](Identities& next, const iam::DeleteRolePermissionsBoundaryRequest& in) {
        return policy::set_boundary(next, EntityKind::role, *in.role_name, "");
      });
}

}  // namespace

iam::Role shown_role(const Identities& identities, const Role& role, bool whole) {
  iam::Role out;
  out.path = role.path;
  out.role_name = role.name;
  out.role_id = role.id;
  out.arn = identities.arn_of(role);
  out.create_date = role.created;
  out.assume_role_policy_document = percent_encode(role.trust.text);
  if (!role.description.empty()) out.description = role.description;
  out.max_session_duration = role.max_session_seconds;
  if (!whole) return out;  // lists leave out the rest
  out.permissions_boundary = shown_boundary(role);
  out.tags = shown_tags(role.tags);
  return out;
}

void add_roles(OperationTable& table, const Services& services) {
  add_edit<iam::CreateRole>(
      table, services, false,
      [&services](Identities& next, const Context& context, const iam::CreateRoleRequest& in) {
        return create_role(*services.identities, next, context, in);
      });
  add_read<iam::GetRole>(
      table, services,
      [](const Identities& identities, const Context&,
         const iam::GetRoleRequest& in) -> Result<iam::GetRoleResponse> {
        return iam::GetRoleResponse{
            .role = shown_role(identities, role_or_undefined(identities, *in.role_name), true)};
      });
  add_read<iam::ListRoles>(table, services, list_roles);
  add_role_changes(table, services);
  add_change<iam::TagRole>(table, services, [](Identities& next, const iam::TagRoleRequest& in) {
    return policy::tag(next, EntityKind::role, *in.role_name, tags_in(in.tags));
  });
  add_change<iam::UntagRole>(
      table, services, [](Identities& next, const iam::UntagRoleRequest& in) {
        return policy::untag(next, EntityKind::role, *in.role_name, *in.tag_keys);
      });
  add_read<iam::ListRoleTags>(
      table, services,
      [](const Identities& identities, const Context&,
         const iam::ListRoleTagsRequest& in) -> Result<iam::ListRoleTagsResponse> {
        const Role role = role_or_undefined(identities, *in.role_name);
        iam::ListRoleTagsResponse out;
        out.tags = TRY(page_of(
            in, shown_tags(role.tags).value_or(std::vector<iam::Tag>()),
            [](const iam::Tag& tag) { return *tag.key; }, out));
        return out;
      });
}

}  // namespace trainyard::api::iam
