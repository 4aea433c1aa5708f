// Changes users, groups, roles, managed policies and access keys, as IAM's operations do.
//
// Each function edits a copy of the snapshot that is not yet published; after an error the copy is
// discarded. Instants and ids are arguments. Documents are already parsed (parse_policy), so errors
// in documents and errors of changes are separate.
//
// Threads: pure.
// Errors:  not_found (NoSuchEntity), conflict (EntityAlreadyExists; of remove_*: DeleteConflict),
//          exhausted (LimitExceeded), invalid (InvalidInput), denied (UnmodifiableEntity: defined
//          in the configuration file, or an AWS managed policy). Messages are AWS's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/identities.hpp"

namespace trainyard::policy {

// AWS's default quotas.
inline constexpr size_t kUsersMax = 5'000;
inline constexpr size_t kGroupsMax = 300;
inline constexpr size_t kRolesMax = 1'000;
inline constexpr size_t kManagedPoliciesMax = 1'500;  // in the account
inline constexpr size_t kAttachedPoliciesMax = 10;    // for one user, group or role
inline constexpr size_t kGroupsPerUserMax = 10;
inline constexpr size_t kKeysPerUserMax = 2;
inline constexpr size_t kPolicyVersionsMax = 5;
inline constexpr size_t kEntityTagsMax = 50;

enum class EntityKind { user, group, role };
std::string_view to_string(EntityKind kind);  // "user", "group", "role"

// Returns exhausted, with AWS's text.
Error quota_reached(std::string_view name, size_t max);

// -- lookups. Errors: not_found, with AWS's text
Result<const Entity*> entity_of(const Identities& identities, EntityKind kind,
                                std::string_view name);
Result<const User*> user_of(const Identities& identities, std::string_view name);
Result<const Group*> group_of(const Identities& identities, std::string_view name);
Result<const Role*> role_of(const Identities& identities, std::string_view name);
Result<const VersionedPolicy*> policy_of(const Identities& identities, std::string_view arn);
Result<const AccessKey*> key_of(const Identities& identities, std::string_view id);
Result<const Document*> inline_policy_of(const Identities& identities, EntityKind kind,
                                         std::string_view name, std::string_view policy);
std::vector<const AccessKey*> keys_of(const Identities& identities, std::string_view user);

// -- users, groups, roles
Result<void> add_user(Identities& identities, User user);
Result<void> add_group(Identities& identities, Group group);
Result<void> add_role(Identities& identities, Role role);
// Change the name and path of a user or group ("": unchanged). Its keys and memberships are kept.
Result<void> rename_user(Identities& identities, std::string_view name, std::string new_name,
                         std::string new_path);
Result<void> rename_group(Identities& identities, std::string_view name, std::string new_name,
                          std::string new_path);
Result<void> remove_user(Identities& identities, std::string_view name);
Result<void> remove_group(Identities& identities, std::string_view name);
Result<void> remove_role(Identities& identities, std::string_view name);
Result<void> add_to_group(Identities& identities, std::string_view group, std::string_view user);
Result<void> remove_from_group(Identities& identities, std::string_view group,
                               std::string_view user);
Result<void> set_trust(Identities& identities, std::string_view role, Document trust);
Result<void> update_role(Identities& identities, std::string_view role,
                         std::optional<std::string> description,
                         std::optional<int64_t> max_session_seconds);

// -- policies of users, groups, roles
Result<void> put_inline_policy(Identities& identities, EntityKind kind, std::string_view name,
                               const std::string& policy, Document document);
Result<void> remove_inline_policy(Identities& identities, EntityKind kind, std::string_view name,
                                  const std::string& policy);
Result<void> attach_policy(Identities& identities, EntityKind kind, std::string_view name,
                           const std::string& arn);
Result<void> detach_policy(Identities& identities, EntityKind kind, std::string_view name,
                           const std::string& arn);
// `arn`: "" removes the boundary. Requires: kind is not group.
Result<void> set_boundary(Identities& identities, EntityKind kind, std::string_view name,
                          std::string arn);

// -- managed policies
Result<void> add_managed_policy(Identities& identities, VersionedPolicy policy);
// Returns the number of the new version.
Result<int> add_policy_version(Identities& identities, std::string_view arn, Document document,
                               bool make_default, Instant at);
Result<void> set_default_version(Identities& identities, std::string_view arn,
                                 std::string_view version, Instant at);
Result<void> remove_policy_version(Identities& identities, std::string_view arn,
                                   std::string_view version);
Result<void> remove_managed_policy(Identities& identities, std::string_view arn);
// Finds a version by a text such as "v3". Errors: not_found, with AWS's text.
Result<const PolicyVersion*> version_of(const VersionedPolicy& policy, std::string_view version);

// -- tags. The case of keys is ignored, as in IAM
Result<void> tag(Identities& identities, EntityKind kind, std::string_view name,
                 const std::vector<Tag>& tags);
Result<void> untag(Identities& identities, EntityKind kind, std::string_view name,
                   const std::vector<std::string>& keys);
Result<void> tag_policy(Identities& identities, std::string_view arn, const std::vector<Tag>& tags);
Result<void> untag_policy(Identities& identities, std::string_view arn,
                          const std::vector<std::string>& keys);

// Return the tags after an addition, and after a removal. Errors: exhausted.
Result<std::vector<Tag>> with_tags(std::vector<Tag> tags, const std::vector<Tag>& add);
std::vector<Tag> without_tags(std::vector<Tag> tags, const std::vector<std::string>& keys);

// -- access keys
Result<void> add_key(Identities& identities, AccessKey key);
Result<void> set_key_active(Identities& identities, std::string_view user, std::string_view id,
                            bool active);
Result<void> remove_key(Identities& identities, std::string_view user, std::string_view id);

// -- users of a managed policy
struct PolicyUses {
  std::vector<const User*> users;
  std::vector<const Group*> groups;
  std::vector<const Role*> roles;
  size_t count() const { return users.size() + groups.size() + roles.size(); }
};
PolicyUses attachments_of(const Identities& identities, std::string_view arn);
PolicyUses boundaries_of(const Identities& identities, std::string_view arn);

}  // namespace trainyard::policy
