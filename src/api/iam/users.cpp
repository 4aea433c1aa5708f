// Implements the operations on users and groups, and the account's summary.
#include "iam/common.hpp"
#include "policy/instance_profiles.hpp"

namespace trainyard::api::iam {
namespace {

using policy::Group;
using policy::User;

iam::User to_shape(const Identities& identities, const User& user, bool whole) {
  iam::User out;
  out.path = user.path;
  out.user_name = user.name;
  out.user_id = user.id;
  out.arn = identities.arn_of(user);
  out.create_date = user.created;
  if (!whole) return out;  // lists leave out the rest
  out.permissions_boundary = shown_boundary(user);
  out.tags = shown_tags(user.tags);
  return out;
}

iam::Group to_shape(const Identities& identities, const Group& group) {
  iam::Group out;
  out.path = group.path;
  out.group_name = group.name;
  out.group_id = group.id;
  out.arn = identities.arn_of(group);
  out.create_date = group.created;
  return out;
}

Outcome<iam::CreateUserResponse> create_user(IdentityStore& store, Identities& next,
                                             const Context& context,
                                             const iam::CreateUserRequest& in) {
  User user;
  user.name = *in.user_name;
  user.path = in.path.value_or("/");
  user.id = store.make_id("AIDA");
  user.created = context.now;
  user.tags = tags_in(in.tags);
  user.boundary = in.permissions_boundary.value_or("");
  TRY(policy::add_user(next, std::move(user)));
  return iam::CreateUserResponse{.user = to_shape(next, *next.find_user(*in.user_name), true)};
}

// Finds the user of a request; without a name, the caller. The owner may have no record.
Result<iam::GetUserResponse> get_user(const Identities& identities, const Context& context,
                                      const iam::GetUserRequest& in) {
  const std::string name = in.user_name.value_or(context.principal.name);
  const User* user = identities.find_user(name);
  if (!user && !in.user_name && context.principal.owner()) {
    iam::User owner;
    owner.path = "/";
    owner.user_name = context.principal.name;
    owner.user_id = context.principal.user_id;
    owner.arn = context.principal.arn;
    owner.create_date = Instant{};
    return iam::GetUserResponse{.user = std::move(owner)};
  }
  return iam::GetUserResponse{
      .user = to_shape(identities, *TRY(policy::user_of(identities, name)), true)};
}

Result<iam::ListUsersResponse> list_users(const Identities& identities, const Context&,
                                          const iam::ListUsersRequest& in) {
  std::vector<iam::User> all;
  for (const auto& [name, user] : identities.users())
    if (has_prefix(user->path, in.path_prefix)) all.push_back(to_shape(identities, *user, false));
  iam::ListUsersResponse out;
  out.users = TRY(page_of(
      in, std::move(all), [](const iam::User& user) { return *user.user_name; }, out));
  return out;
}

Result<iam::GetGroupResponse> get_group(const Identities& identities, const Context&,
                                        const iam::GetGroupRequest& in) {
  const Group& group = *TRY(policy::group_of(identities, *in.group_name));
  std::vector<iam::User> members;
  for (const auto& [name, user] : identities.users())
    if (user->groups.contains(group.name)) members.push_back(to_shape(identities, *user, false));
  iam::GetGroupResponse out;
  out.group = to_shape(identities, group);
  out.users = TRY(page_of(
      in, std::move(members), [](const iam::User& user) { return *user.user_name; }, out));
  return out;
}

Result<iam::ListGroupsResponse> list_groups(const Identities& identities, const Context&,
                                            const iam::ListGroupsRequest& in) {
  std::vector<iam::Group> all;
  for (const auto& [name, group] : identities.groups())
    if (has_prefix(group->path, in.path_prefix)) all.push_back(to_shape(identities, *group));
  iam::ListGroupsResponse out;
  out.groups = TRY(page_of(
      in, std::move(all), [](const iam::Group& group) { return *group.group_name; }, out));
  return out;
}

Result<iam::ListGroupsForUserResponse> list_groups_for_user(
    const Identities& identities, const Context&, const iam::ListGroupsForUserRequest& in) {
  std::vector<iam::Group> all;
  for (const std::string& name : TRY(policy::user_of(identities, *in.user_name))->groups)
    if (const Group* group = identities.find_group(name))
      all.push_back(to_shape(identities, *group));
  iam::ListGroupsForUserResponse out;
  out.groups = TRY(page_of(
      in, std::move(all), [](const iam::Group& group) { return *group.group_name; }, out));
  return out;
}

Result<iam::ListUserTagsResponse> list_user_tags(const Identities& identities, const Context&,
                                                 const iam::ListUserTagsRequest& in) {
  const auto& user = *TRY(policy::user_of(identities, *in.user_name));
  iam::ListUserTagsResponse out;
  out.tags = TRY(page_of(
      in, shown_tags(user.tags).value_or(std::vector<iam::Tag>()),
      [](const iam::Tag& tag) { return *tag.key; }, out));
  return out;
}

Result<iam::GetAccountSummaryResponse> account_summary(const Identities& identities, const Context&,
                                                       const iam::GetAccountSummary::Input&) {
  int64_t own = 0, versions = 0;
  for (const auto& [arn, policy] : identities.policies()) {
    if (policy->aws_managed) continue;
    ++own;
    versions += int64_t(policy->versions.size());
  }
  iam::GetAccountSummaryResponse out;
  out.summary_map = {{"Users", int64_t(identities.users().size())},
                     {"UsersQuota", int64_t(policy::kUsersMax)},
                     {"Groups", int64_t(identities.groups().size())},
                     {"GroupsQuota", int64_t(policy::kGroupsMax)},
                     {"Roles", int64_t(identities.roles().size())},
                     {"RolesQuota", int64_t(policy::kRolesMax)},
                     {"InstanceProfiles", int64_t(identities.instance_profiles().size())},
                     {"InstanceProfilesQuota", int64_t(policy::kInstanceProfilesMax)},
                     {"Policies", own},
                     {"PoliciesQuota", int64_t(policy::kManagedPoliciesMax)},
                     {"PolicyVersionsInUse", versions},
                     {"PolicySizeQuota", int64_t(policy::kManagedPolicyBytesMax)},
                     {"VersionsPerPolicyQuota", int64_t(policy::kPolicyVersionsMax)},
                     {"GroupsPerUserQuota", int64_t(policy::kGroupsPerUserMax)},
                     {"AccessKeysPerUserQuota", int64_t(policy::kKeysPerUserMax)},
                     {"UserPolicySizeQuota", int64_t(policy::kUserInlineBytesMax)},
                     {"GroupPolicySizeQuota", int64_t(policy::kGroupInlineBytesMax)},
                     {"AttachedPoliciesPerUserQuota", int64_t(policy::kAttachedPoliciesMax)},
                     {"AttachedPoliciesPerGroupQuota", int64_t(policy::kAttachedPoliciesMax)},
                     {"AttachedPoliciesPerRoleQuota", int64_t(policy::kAttachedPoliciesMax)}};
  return out;
}

void add_groups(OperationTable& table, const Services& services) {
  add_edit<iam::CreateGroup>(
      table, services, false,
      [&services](Identities& next, const Context& context,
                  const iam::CreateGroupRequest& in) -> Outcome<iam::CreateGroupResponse> {
        Group group;
        group.name = *in.group_name;
        group.path = in.path.value_or("/");
        group.id = services.identities->make_id("AGPA");
        group.created = context.now;
        TRY(policy::add_group(next, std::move(group)));
        return iam::CreateGroupResponse{.group = to_shape(next, *next.find_group(*in.group_name))};
      });
  add_read<iam::GetGroup>(table, services, get_group);
  add_read<iam::ListGroups>(table, services, list_groups);
  add_change<iam::UpdateGroup>(
      table, services, [](Identities& next, const iam::UpdateGroupRequest& in) {
        return policy::rename_group(next, *in.group_name, in.new_group_name.value_or(""),
                                    in.new_path.value_or(""));
      });
  add_change<iam::DeleteGroup>(table, services,
                               [](Identities& next, const iam::DeleteGroupRequest& in) {
                                 return policy::remove_group(next, *in.group_name);
                               });
  add_change<iam::AddUserToGroup>(
      table, services, [](Identities& next, const iam::AddUserToGroupRequest& in) {
        return policy::add_to_group(next, *in.group_name, *in.user_name);
      });
  add_change<iam::RemoveUserFromGroup>(
      table, services, [](Identities& next, const iam::RemoveUserFromGroupRequest& in) {
        return policy::remove_from_group(next, *in.group_name, *in.user_name);
      });
  add_read<iam::ListGroupsForUser>(table, services, list_groups_for_user);
}

}  // namespace

void add_users(OperationTable& table, const Services& services) {
  add_edit<iam::CreateUser>(
      table, services, false,
      [&services](Identities& next, const Context& context, const iam::CreateUserRequest& in) {
        return create_user(*services.identities, next, context, in);
      });
  add_read<iam::GetUser>(table, services, get_user);
  add_read<iam::ListUsers>(table, services, list_users);
  add_change<iam::UpdateUser>(
      table, services, [](Identities& next, const iam::UpdateUserRequest& in) {
        return policy::rename_user(next, *in.user_name, in.new_user_name.value_or(""),
                                   in.new_path.value_or(""));
      });
  add_change<iam::DeleteUser>(table, services,
                              [](Identities& next, const iam::DeleteUserRequest& in) {
                                return policy::remove_user(next, *in.user_name);
                              });
  add_change<iam::TagUser>(table, services, [](Identities& next, const iam::TagUserRequest& in) {
    return policy::tag(next, EntityKind::user, *in.user_name, tags_in(in.tags));
  });
  add_change<iam::UntagUser>(
      table, services, [](Identities& next, const iam::UntagUserRequest& in) {
        return policy::untag(next, EntityKind::user, *in.user_name, *in.tag_keys);
      });
  add_read<iam::ListUserTags>(table, services, list_user_tags);
  add_change<iam::PutUserPermissionsBoundary>(
      table, services, [](Identities& next, const iam::PutUserPermissionsBoundaryRequest& in) {
        return policy::set_boundary(next, EntityKind::user, *in.user_name,
                                    *in.permissions_boundary);
      });
  add_change<iam::DeleteUserPermissionsBoundary>(
      table, services, [](Identities& next, const iam::DeleteUserPermissionsBoundaryRequest& in) {
        return policy::set_boundary(next, EntityKind::user, *in.user_name, "");
      });
  add_read<iam::GetAccountSummary>(table, services, account_summary);
  add_groups(table, services);
}

}  // namespace trainyard::api::iam
