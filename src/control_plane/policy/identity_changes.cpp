#include "policy/identity_changes.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/enum_table.hpp"
#include "base/text.hpp"
#include "policy/instance_profiles.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {
namespace {

std::string capital(EntityKind kind) {
  std::string name(to_string(kind));
  name[0] = char(name[0] - 'a' + 'A');
  return name;
}

Error missing(EntityKind kind, std::string_view name) {
  return not_found("The " + std::string(to_string(kind)) + " with name " + std::string(name) +
                   " cannot be found.");
}

Error defined_in_config(std::string_view what, std::string_view name) {
  return denied(
      "The " + std::string(what) + " " + std::string(name) +
      " is defined in the configuration file of this server: change it there and send SIGHUP.");
}

Result<void> modifiable(EntityKind kind, const Entity& entity) {
  return entity.from_config ? Result<void>(defined_in_config(to_string(kind), entity.name)) : ok();
}

// IAM ignores case when it compares names for uniqueness.
template <class T>
bool taken(const Identities::Table<T>& table, std::string_view name) {
  return std::ranges::any_of(
      table, [&](const auto& each) { return equals_ignoring_case(each.first, name); });
}

template <class T>
Result<void> check_new(const Identities::Table<T>& table, EntityKind kind, std::string_view name,
                       size_t max) {
  if (taken(table, name))
    return conflict(capital(kind) + " with name " + std::string(name) + " already exists.");
  if (table.size() >= max) return quota_reached(capital(kind) + "sPerAccount", max);
  return {};
}

// Edits one user, group or role that the API may change.
template <class Edit>
Result<void> edit(Identities& identities, EntityKind kind, std::string_view name, Edit change) {
  const auto one = [&](auto entity) -> Result<void> {
    TRY(modifiable(kind, entity));
    TRY(change(static_cast<Entity&>(entity)));
    identities.put(std::move(entity));
    return {};
  };
  switch (kind) {
    case EntityKind::user:
      return one(User(*TRY(user_of(identities, name))));
    case EntityKind::group:
      return one(Group(*TRY(group_of(identities, name))));
    case EntityKind::role:
      return one(Role(*TRY(role_of(identities, name))));
  }
  return internal("an unknown kind of entity");
}

template <class Edit>
Result<void> edit_policy(Identities& identities, std::string_view arn, Edit change) {
  VersionedPolicy policy = *TRY(policy_of(identities, arn));
  if (policy.aws_managed)
    return denied("Policy " + policy.arn + " is an AWS managed policy and cannot be changed.");
  if (policy.from_config) return defined_in_config("policy", policy.name);
  TRY(change(policy));
  identities.put(std::move(policy));
  return {};
}

size_t inline_bytes_max(EntityKind kind) {
  return kind == EntityKind::user    ? kUserInlineBytesMax
         : kind == EntityKind::group ? kGroupInlineBytesMax
                                     : kRoleInlineBytesMax;
}

Result<void> check_removable(EntityKind kind, const Entity& entity) {
  TRY(modifiable(kind, entity));
  if (!entity.attached.empty())
    return conflict("Cannot delete entity, must detach all policies first.");
  if (!entity.inline_policies.empty())
    return conflict("Cannot delete entity, must delete policies first.");
  return {};
}

Result<void> check_boundary(const Identities& identities, const std::string& arn) {
  if (!arn.empty() && !identities.find_policy(arn))
    return not_found("Scope ARN: " + arn + " does not exist or is not attachable.");
  return {};
}

// Removes keys of an earlier user with this name, so that they are not valid for a new user.
void forget_keys_of(Identities& identities, std::string_view user) {
  for (const AccessKey* key : keys_of(identities, user))
    if (!key->from_config) identities.remove_key(std::string(key->id));
}

Result<void> check_member(const User& user) {
  if (user.groups.size() > kGroupsPerUserMax)
    return quota_reached("GroupsPerUser", kGroupsPerUserMax);
  return {};
}

template <class T, class Find>
void collect(const Identities::Table<T>& table, Find find, std::vector<const T*>& to) {
  for (const auto& [name, entity] : table)
    if (find(*entity)) to.push_back(entity.get());
}

template <class Find>
PolicyUses uses(const Identities& identities, Find find) {
  PolicyUses uses;
  collect(identities.users(), find, uses.users);
  collect(identities.groups(), find, uses.groups);
  collect(identities.roles(), find, uses.roles);
  return uses;
}

}  // namespace

Error quota_reached(std::string_view name, size_t max) {
  return exhausted("Cannot exceed quota for " + std::string(name) + ": " + std::to_string(max));
}

std::string_view to_string(EntityKind kind) {
  static constexpr EnumTable<EntityKind> kKinds{
      "kind of entity",
      {{EntityKind::user, "user"}, {EntityKind::group, "group"}, {EntityKind::role, "role"}}};
  return kKinds.text(kind);
}

// -- lookups ------------------------------------------------------------------------------------

Result<const User*> user_of(const Identities& identities, std::string_view name) {
  const User* user = identities.find_user(name);
  return user ? Result<const User*>(user) : missing(EntityKind::user, name);
}
Result<const Group*> group_of(const Identities& identities, std::string_view name) {
  const Group* group = identities.find_group(name);
  return group ? Result<const Group*>(group) : missing(EntityKind::group, name);
}
Result<const Role*> role_of(const Identities& identities, std::string_view name) {
  const Role* role = identities.find_role(name);
  return role ? Result<const Role*>(role) : missing(EntityKind::role, name);
}
Result<const Entity*> entity_of(const Identities& identities, EntityKind kind,
                                std::string_view name) {
  const Entity* entity =
      kind == EntityKind::user    ? static_cast<const Entity*>(identities.find_user(name))
      : kind == EntityKind::group ? static_cast<const Entity*>(identities.find_group(name))
                                  : identities.find_role(name);
  return entity ? Result<const Entity*>(entity) : missing(kind, name);
}
Result<const VersionedPolicy*> policy_of(const Identities& identities, std::string_view arn) {
  const VersionedPolicy* policy = identities.find_policy(arn);
  if (!policy) return not_found("Policy " + std::string(arn) + " was not found.");
  return policy;
}
Result<const AccessKey*> key_of(const Identities& identities, std::string_view id) {
  const AccessKey* key = identities.find_key(id);
  if (!key) return not_found("The Access Key with id " + std::string(id) + " cannot be found.");
  return key;
}
Result<const Document*> inline_policy_of(const Identities& identities, EntityKind kind,
                                         std::string_view name, std::string_view policy) {
  const Entity* entity = TRY(entity_of(identities, kind, name));
  const auto found = entity->inline_policies.find(std::string(policy));
  if (found == entity->inline_policies.end())
    return not_found("The " + std::string(to_string(kind)) + " policy with name " +
                     std::string(policy) + " cannot be found.");
  return &found->second;
}
std::vector<const AccessKey*> keys_of(const Identities& identities, std::string_view user) {
  std::vector<const AccessKey*> keys;
  for (const auto& [id, key] : identities.keys())
    if (key->user == user) keys.push_back(key.get());
  return keys;
}

// -- users, groups, roles -----------------------------------------------------------------------

Result<void> add_user(Identities& identities, User user) {
  TRY(check_new(identities.users(), EntityKind::user, user.name, kUsersMax));
  TRY(check_boundary(identities, user.boundary));
  user.tags = TRY(with_tags({}, user.tags));
  forget_keys_of(identities, user.name);
  identities.put(std::move(user));
  return {};
}

Result<void> add_group(Identities& identities, Group group) {
  TRY(check_new(identities.groups(), EntityKind::group, group.name, kGroupsMax));
  identities.put(std::move(group));
  return {};
}

Result<void> add_role(Identities& identities, Role role) {
  TRY(check_new(identities.roles(), EntityKind::role, role.name, kRolesMax));
  TRY(check_boundary(identities, role.boundary));
  role.tags = TRY(with_tags({}, role.tags));
  identities.put(std::move(role));
  return {};
}

Result<void> rename_user(Identities& identities, std::string_view name, std::string new_name,
                         std::string new_path) {
  User user = *TRY(user_of(identities, name));
  TRY(modifiable(EntityKind::user, user));
  const std::string old = user.name;
  if (new_name.empty()) new_name = old;
  identities.remove_user(old);
  TRY(check_new(identities.users(), EntityKind::user, new_name, kUsersMax));
  if (new_name != old) forget_keys_of(identities, new_name);
  user.name = new_name;
  if (!new_path.empty()) user.path = std::move(new_path);
  identities.put(std::move(user));
  if (new_name == old) return {};
  for (const AccessKey* key : keys_of(identities, old)) {
    AccessKey moved = *key;
    moved.user = new_name;
    identities.put(std::move(moved));
  }
  return {};
}

Result<void> rename_group(Identities& identities, std::string_view name, std::string new_name,
                          std::string new_path) {
  Group group = *TRY(group_of(identities, name));
  TRY(modifiable(EntityKind::group, group));
  const std::string old = group.name;
  if (new_name.empty()) new_name = old;
  identities.remove_group(old);
  TRY(check_new(identities.groups(), EntityKind::group, new_name, kGroupsMax));
  group.name = new_name;
  if (!new_path.empty()) group.path = std::move(new_path);
  identities.put(std::move(group));
  if (new_name == old) return {};
  std::vector<User> members;
  for (const auto& [user_name, user] : identities.users())
    if (user->groups.contains(old)) members.push_back(*user);
  for (User& member : members) {
    TRY(modifiable(EntityKind::user, member));
    member.groups.erase(old);
    member.groups.insert(new_name);
    identities.put(std::move(member));
  }
  return {};
}

Result<void> remove_user(Identities& identities, std::string_view name) {
  const User* user = TRY(user_of(identities, name));
  TRY(check_removable(EntityKind::user, *user));
  if (!keys_of(identities, user->name).empty())
    return conflict("Cannot delete entity, must delete access keys first.");
  if (!user->groups.empty())
    return conflict("Cannot delete entity, must remove users from group first.");
  identities.remove_user(std::string(user->name));
  return {};
}

Result<void> remove_group(Identities& identities, std::string_view name) {
  const Group* group = TRY(group_of(identities, name));
  TRY(check_removable(EntityKind::group, *group));
  for (const auto& [user_name, user] : identities.users())
    if (user->groups.contains(group->name))
      return conflict("Cannot delete entity, must remove users from group first.");
  identities.remove_group(std::string(group->name));
  return {};
}

Result<void> remove_role(Identities& identities, std::string_view name) {
  const Role* role = TRY(role_of(identities, name));
  TRY(check_removable(EntityKind::role, *role));
  if (!instance_profiles_with(identities, role->name).empty())
    return conflict("Cannot delete entity, must remove roles from instance profile first.");
  identities.remove_role(std::string(role->name));
  return {};
}

Result<void> add_to_group(Identities& identities, std::string_view group, std::string_view name) {
  const std::string& joined = TRY(group_of(identities, group))->name;
  User user = *TRY(user_of(identities, name));
  if (user.groups.contains(joined)) return {};
  TRY(modifiable(EntityKind::user, user));
  user.groups.insert(joined);
  TRY(check_member(user));
  identities.put(std::move(user));
  return {};
}

Result<void> remove_from_group(Identities& identities, std::string_view group,
                               std::string_view name) {
  const std::string& left = TRY(group_of(identities, group))->name;
  User user = *TRY(user_of(identities, name));
  if (!user.groups.contains(left))
    return not_found("User " + user.name + " is not in group " + left + ".");
  TRY(modifiable(EntityKind::user, user));
  user.groups.erase(left);
  identities.put(std::move(user));
  return {};
}

Result<void> set_trust(Identities& identities, std::string_view name, Document trust) {
  Role role = *TRY(role_of(identities, name));
  TRY(modifiable(EntityKind::role, role));
  role.trust = std::move(trust);
  identities.put(std::move(role));
  return {};
}

Result<void> update_role(Identities& identities, std::string_view name,
                         std::optional<std::string> description,
                         std::optional<int64_t> max_session_seconds) {
  Role role = *TRY(role_of(identities, name));
  TRY(modifiable(EntityKind::role, role));
  // As on AWS, without a description it becomes empty, and without a duration it is the default.
  role.description = description.value_or("");
  role.max_session_seconds = max_session_seconds.value_or(Role().max_session_seconds);
  identities.put(std::move(role));
  return {};
}

// -- policies of users, groups, roles -----------------------------------------------------------

Result<void> put_inline_policy(Identities& identities, EntityKind kind, std::string_view name,
                               const std::string& policy, Document document) {
  return edit(identities, kind, name, [&](Entity& entity) -> Result<void> {
    entity.inline_policies.insert_or_assign(policy, std::move(document));
    size_t bytes = 0;
    for (const auto& [each, kept] : entity.inline_policies) bytes += policy_size(kept.text);
    if (bytes > inline_bytes_max(kind))
      return exhausted("Maximum policy size of " + std::to_string(inline_bytes_max(kind)) +
                       " bytes exceeded for " + std::string(to_string(kind)) + " " + entity.name);
    return {};
  });
}

Result<void> remove_inline_policy(Identities& identities, EntityKind kind, std::string_view name,
                                  const std::string& policy) {
  TRY(inline_policy_of(identities, kind, name, policy));
  return edit(identities, kind, name, [&](Entity& entity) -> Result<void> {
    entity.inline_policies.erase(policy);
    return {};
  });
}

Result<void> attach_policy(Identities& identities, EntityKind kind, std::string_view name,
                           const std::string& arn) {
  TRY(entity_of(identities, kind, name));
  if (!identities.find_policy(arn))
    return not_found("Policy " + arn + " does not exist or is not attachable.");
  return edit(identities, kind, name, [&](Entity& entity) -> Result<void> {
    if (std::ranges::find(entity.attached, arn) != entity.attached.end()) return {};
    if (entity.attached.size() >= kAttachedPoliciesMax)
      return quota_reached("PoliciesPer" + capital(kind), kAttachedPoliciesMax);
    entity.attached.push_back(arn);
    return {};
  });
}

Result<void> detach_policy(Identities& identities, EntityKind kind, std::string_view name,
                           const std::string& arn) {
  return edit(identities, kind, name, [&](Entity& entity) -> Result<void> {
    if (std::erase(entity.attached, arn) == 0)
      return not_found("Policy " + arn + " was not found.");
    return {};
  });
}

Result<void> set_boundary(Identities& identities, EntityKind kind, std::string_view name,
                          std::string arn) {
  TRY(entity_of(identities, kind, name));
  TRY(check_boundary(identities, arn));
  return edit(identities, kind, name, [&](Entity& entity) -> Result<void> {
    if (arn.empty() && entity.boundary.empty())
      return not_found("The " + std::string(to_string(kind)) + " " + entity.name +
                       " does not have a permissions boundary.");
    entity.boundary = std::move(arn);
    return {};
  });
}

// -- managed policies ---------------------------------------------------------------------------

Result<void> add_managed_policy(Identities& identities, VersionedPolicy policy) {
  size_t own = 0;
  for (const auto& [arn, each] : identities.policies()) {
    if (each->aws_managed) continue;
    ++own;
    if (equals_ignoring_case(each->name, policy.name))
      return conflict("A policy called " + policy.name +
                      " already exists. Duplicate names are not allowed.");
  }
  if (own >= kManagedPoliciesMax) return quota_reached("PoliciesPerAccount", kManagedPoliciesMax);
  policy.tags = TRY(with_tags({}, policy.tags));
  identities.put(std::move(policy));
  return {};
}

Result<const PolicyVersion*> version_of(const VersionedPolicy& policy, std::string_view version) {
  const auto number = version.starts_with("v") ? parse_int(version.substr(1)) : invalid("");
  const PolicyVersion* found = nullptr;
  if (number && *number > 0 && *number <= policy.last_version) found = policy.version(int(*number));
  if (!found)
    return not_found("Policy " + policy.arn + " version " + std::string(version) +
                     " does not exist or is not attachable.");
  return found;
}

Result<int> add_policy_version(Identities& identities, std::string_view arn, Document document,
                               bool make_default, Instant at) {
  int number = 0;
  TRY(edit_policy(identities, arn, [&](VersionedPolicy& policy) -> Result<void> {
    if (policy.versions.size() >= kPolicyVersionsMax)
      return exhausted(
          "A managed policy can have up to 5 versions. Before you create a new version, you must "
          "delete an existing version.");
    number = ++policy.last_version;
    policy.versions.push_back({number, std::move(document), at});
    if (make_default) policy.default_version = number;
    policy.updated = at;
    return {};
  }));
  return number;
}

Result<void> set_default_version(Identities& identities, std::string_view arn,
                                 std::string_view version, Instant at) {
  return edit_policy(identities, arn, [&](VersionedPolicy& policy) -> Result<void> {
    policy.default_version = TRY(version_of(policy, version))->number;
    policy.updated = at;
    return {};
  });
}

Result<void> remove_policy_version(Identities& identities, std::string_view arn,
                                   std::string_view version) {
  return edit_policy(identities, arn, [&](VersionedPolicy& policy) -> Result<void> {
    const int number = TRY(version_of(policy, version))->number;
    if (number == policy.default_version)
      return conflict("Cannot delete the default version of a policy.");
    std::erase_if(policy.versions,
                  [&](const PolicyVersion& each) { return each.number == number; });
    return {};
  });
}

Result<void> remove_managed_policy(Identities& identities, std::string_view arn) {
  const std::string name(arn);
  TRY(edit_policy(identities, name, [&](VersionedPolicy& policy) -> Result<void> {
    if (attachments_of(identities, name).count() > 0 || boundaries_of(identities, name).count() > 0)
      return conflict("Cannot delete a policy attached to entities.");
    if (policy.versions.size() > 1)
      return conflict(
          "This policy has more than one version. Before you delete a policy, you must delete the "
          "policy's versions. The default version is deleted with the policy.");
    return {};
  }));
  identities.remove_policy(name);
  return {};
}

// -- tags ---------------------------------------------------------------------------------------

Result<std::vector<Tag>> with_tags(std::vector<Tag> tags, const std::vector<Tag>& add) {
  for (const Tag& each : add) {
    const auto found = std::ranges::find_if(
        tags, [&](const Tag& tag) { return equals_ignoring_case(tag.key, each.key); });
    if (found == tags.end())
      tags.push_back(each);
    else
      *found = each;
  }
  if (tags.size() > kEntityTagsMax)
    return exhausted("The number of tags has reached the maximum limit: " +
                     std::to_string(kEntityTagsMax));
  return tags;
}

std::vector<Tag> without_tags(std::vector<Tag> tags, const std::vector<std::string>& keys) {
  std::erase_if(tags, [&](const Tag& tag) {
    return std::ranges::any_of(keys,
                               [&](const auto& key) { return equals_ignoring_case(tag.key, key); });
  });
  return tags;
}

Result<void> tag(Identities& identities, EntityKind kind, std::string_view name,
                 const std::vector<Tag>& tags) {
  return edit(identities, kind, name, [&](Entity& entity) -> Result<void> {
    entity.tags = TRY(with_tags(entity.tags, tags));
    return {};
  });
}

Result<void> untag(Identities& identities, EntityKind kind, std::string_view name,
                   const std::vector<std::string>& keys) {
  return edit(identities, kind, name, [&](Entity& entity) -> Result<void> {
    entity.tags = without_tags(entity.tags, keys);
    return {};
  });
}

Result<void> tag_policy(Identities& identities, std::string_view arn,
                        const std::vector<Tag>& tags) {
  return edit_policy(identities, arn, [&](VersionedPolicy& policy) -> Result<void> {
    policy.tags = TRY(with_tags(policy.tags, tags));
    return {};
  });
}

Result<void> untag_policy(Identities& identities, std::string_view arn,
                          const std::vector<std::string>& keys) {
  return edit_policy(identities, arn, [&](VersionedPolicy& policy) -> Result<void> {
    policy.tags = without_tags(policy.tags, keys);
    return {};
  });
}

// -- access keys --------------------------------------------------------------------------------

Result<void> add_key(Identities& identities, AccessKey key) {
  TRY(user_of(identities, key.user));
  if (identities.find_key(key.id))
    return conflict("The Access Key with id " + key.id + " already exists.");
  if (keys_of(identities, key.user).size() >= kKeysPerUserMax)
    return quota_reached("AccessKeysPerUser", kKeysPerUserMax);
  identities.put(std::move(key));
  return {};
}

namespace {

// Returns the key `id` if it belongs to the user and the API may change it.
Result<AccessKey> changeable_key(const Identities& identities, std::string_view user,
                                 std::string_view id) {
  const AccessKey* key = TRY(key_of(identities, id));
  if (key->user != user)
    return not_found("The Access Key with id " + std::string(id) + " cannot be found.");
  if (key->from_config) return defined_in_config("access key", key->id);
  return *key;
}

}  // namespace

Result<void> set_key_active(Identities& identities, std::string_view user, std::string_view id,
                            bool active) {
  AccessKey key = TRY(changeable_key(identities, user, id));
  key.active = active;
  identities.put(std::move(key));
  return {};
}

Result<void> remove_key(Identities& identities, std::string_view user, std::string_view id) {
  identities.remove_key(TRY(changeable_key(identities, user, id)).id);
  return {};
}

// -- users of a managed policy ------------------------------------------------------------

PolicyUses attachments_of(const Identities& identities, std::string_view arn) {
  return uses(identities, [&](const Entity& entity) {
    return std::ranges::find(entity.attached, arn) != entity.attached.end();
  });
}

PolicyUses boundaries_of(const Identities& identities, std::string_view arn) {
  return uses(identities, [&](const Entity& entity) { return entity.boundary == arn; });
}

}  // namespace trainyard::policy
