// Implements the operations on managed policies and their versions.
#include <algorithm>

#include "base/text.hpp"
#include "iam/common.hpp"

namespace trainyard::api::iam {
namespace {

using policy::PolicyVersion;
using policy::VersionedPolicy;

std::string version_id(int number) { return "v" + std::to_string(number); }

iam::Policy to_shape(const Identities& identities, const VersionedPolicy& policy, bool whole) {
  iam::Policy out;
  out.policy_name = policy.name;
  out.policy_id = policy.id;
  out.arn = policy.arn;
  out.path = policy.path;
  out.default_version_id = version_id(policy.default_version);
  out.attachment_count = int64_t(policy::attachments_of(identities, policy.arn).count());
  out.permissions_boundary_usage_count =
      int64_t(policy::boundaries_of(identities, policy.arn).count());
  out.is_attachable = true;
  out.create_date = policy.created;
  out.update_date = policy.updated;
  if (!whole) return out;  // lists leave out the rest
  if (!policy.description.empty()) out.description = policy.description;
  out.tags = shown_tags(policy.tags);
  return out;
}

iam::PolicyVersion to_shape(const VersionedPolicy& policy, const PolicyVersion& version,
                            bool whole) {
  iam::PolicyVersion out;
  if (whole) out.document = percent_encode(version.document.text);
  out.version_id = version_id(version.number);
  out.is_default_version = version.number == policy.default_version;
  out.create_date = version.created;
  return out;
}

Outcome<iam::CreatePolicyResponse> create_policy(IdentityStore& store, Identities& next,
                                                 const Context& context,
                                                 const iam::CreatePolicyRequest& in) {
  VersionedPolicy policy;
  policy.name = *in.policy_name;
  policy.path = in.path.value_or("/");
  policy.arn = next.policy_arn(policy.path, policy.name);
  policy.id = store.make_id("ANPA");
  policy.description = in.description.value_or("");
  policy.created = policy.updated = context.now;
  policy.tags = tags_in(in.tags);
  auto document = TRY(document_in(*in.policy_document, policy::PolicyKind::identity,
                                  policy::kManagedPolicyBytesMax));
  policy.versions.push_back({1, std::move(document), context.now});
  const std::string arn = policy.arn;
  TRY(policy::add_managed_policy(next, std::move(policy)));
  return iam::CreatePolicyResponse{.policy = to_shape(next, *next.find_policy(arn), true)};
}

bool is_listed(const Identities& identities, const VersionedPolicy& policy,
               const iam::ListPoliciesRequest& in) {
  if (in.scope == "AWS" && !policy.aws_managed) return false;
  if (in.scope == "Local" && policy.aws_managed) return false;
  if (!has_prefix(policy.path, in.path_prefix)) return false;
  const bool as_boundary = in.policy_usage_filter == "PermissionsBoundary";
  if (!in.only_attached.value_or(false) && !in.policy_usage_filter) return true;
  return (as_boundary ? policy::boundaries_of(identities, policy.arn)
                      : policy::attachments_of(identities, policy.arn))
             .count() > 0;
}

Result<iam::ListPoliciesResponse> list_policies(const Identities& identities, const Context&,
                                                const iam::ListPoliciesRequest& in) {
  std::vector<iam::Policy> all;
  for (const auto& [arn, policy] : identities.policies())
    if (is_listed(identities, *policy, in)) all.push_back(to_shape(identities, *policy, false));
  iam::ListPoliciesResponse out;
  out.policies = TRY(page_of(
      in, std::move(all), [](const iam::Policy& each) { return *each.arn; }, out));
  return out;
}

Outcome<iam::CreatePolicyVersionResponse> create_version(
    Identities& next, const Context& context, const iam::CreatePolicyVersionRequest& in) {
  auto document = TRY(document_in(*in.policy_document, policy::PolicyKind::identity,
                                  policy::kManagedPolicyBytesMax));
  const int number = TRY(policy::add_policy_version(
      next, *in.policy_arn, std::move(document), in.set_as_default.value_or(false), context.now));
  const VersionedPolicy& policy = *next.find_policy(*in.policy_arn);
  return iam::CreatePolicyVersionResponse{.policy_version =
                                              to_shape(policy, *policy.version(number), false)};
}

Result<iam::GetPolicyVersionResponse> get_version(const Identities& identities, const Context&,
                                                  const iam::GetPolicyVersionRequest& in) {
  const VersionedPolicy& policy = *TRY(policy::policy_of(identities, *in.policy_arn));
  const PolicyVersion& version = *TRY(policy::version_of(policy, *in.version_id));
  return iam::GetPolicyVersionResponse{.policy_version = to_shape(policy, version, true)};
}

Result<iam::ListPolicyVersionsResponse> list_versions(const Identities& identities, const Context&,
                                                      const iam::ListPolicyVersionsRequest& in) {
  const VersionedPolicy& policy = *TRY(policy::policy_of(identities, *in.policy_arn));
  std::vector<iam::PolicyVersion> all;
  for (const PolicyVersion& version : policy.versions)
    all.push_back(to_shape(policy, version, false));
  iam::ListPolicyVersionsResponse out;
  out.versions = TRY(page_of(
      in, std::move(all), [](const iam::PolicyVersion& each) { return *each.version_id; }, out));
  std::ranges::reverse(*out.versions);  // newest first, as on AWS
  return out;
}

// Lists users, groups and roles in the pages of one list, ordered by kind and name.
Result<iam::ListEntitiesForPolicyResponse> list_entities(
    const Identities& identities, const Context&, const iam::ListEntitiesForPolicyRequest& in) {
  TRY(policy::policy_of(identities, *in.policy_arn));
  struct Found {
    std::string key;
    const policy::Entity* entity;
  };
  std::vector<Found> all;
  const auto add = [&](const policy::PolicyUses& uses) {
    const auto add_kind = [&](const char* kind, const auto& entities) {
      if (in.entity_filter && *in.entity_filter != kind) return;
      for (const auto* each : entities)
        if (has_prefix(each->path, in.path_prefix))
          all.push_back({std::string(kind) + "/" + each->name, each});
    };
    add_kind("User", uses.users);
    add_kind("Group", uses.groups);
    add_kind("Role", uses.roles);
  };
  if (in.policy_usage_filter != "PermissionsBoundary")
    add(policy::attachments_of(identities, *in.policy_arn));
  if (in.policy_usage_filter != "PermissionsPolicy")
    add(policy::boundaries_of(identities, *in.policy_arn));
  // An entity may have the policy both attached and as its boundary.
  std::ranges::sort(all, {}, &Found::key);
  const auto same = std::unique(all.begin(), all.end(),
                                [](const Found& a, const Found& b) { return a.key == b.key; });
  all.erase(same, all.end());
  iam::ListEntitiesForPolicyResponse out;
  out.policy_users.emplace();
  out.policy_groups.emplace();
  out.policy_roles.emplace();
  for (const Found& each : TRY(page_of(in, std::move(all), &Found::key, out))) {
    const std::string& name = each.entity->name;
    if (each.key.starts_with("User/"))
      out.policy_users->push_back({.user_name = name, .user_id = each.entity->id});
    else if (each.key.starts_with("Group/"))
      out.policy_groups->push_back({.group_name = name, .group_id = each.entity->id});
    else
      out.policy_roles->push_back({.role_name = name, .role_id = each.entity->id});
  }
  return out;
}

void add_versions(OperationTable& table, const Services& services) {
  add_edit<iam::CreatePolicyVersion>(table, services, false, create_version);
  add_read<iam::GetPolicyVersion>(table, services, get_version);
  add_read<iam::ListPolicyVersions>(table, services, list_versions);
  add_edit<iam::SetDefaultPolicyVersion>(
      table, services, false,
      [](Identities& next, const Context& context, const iam::SetDefaultPolicyVersionRequest& in)
          -> Outcome<iam::SetDefaultPolicyVersion::Output> {
        TRY(policy::set_default_version(next, *in.policy_arn, *in.version_id, context.now));
        return iam::SetDefaultPolicyVersion::Output{};
      });
  add_change<iam::DeletePolicyVersion>(
      table, services, [](Identities& next, const iam::DeletePolicyVersionRequest& in) {
        return policy::remove_policy_version(next, *in.policy_arn, *in.version_id);
      });
}

}  // namespace

void add_managed_policies(OperationTable& table, const Services& services) {
  add_edit<iam::CreatePolicy>(
      table, services, false,
      [&services](Identities& next, const Context& context, const iam::CreatePolicyRequest& in) {
        return create_policy(*services.identities, next, context, in);
      });
  add_read<iam::GetPolicy>(
      table, services,
      [](const Identities& identities, const Context&,
         const iam::GetPolicyRequest& in) -> Result<iam::GetPolicyResponse> {
        const VersionedPolicy& policy = *TRY(policy::policy_of(identities, *in.policy_arn));
        return iam::GetPolicyResponse{.policy = to_shape(identities, policy, true)};
      });
  add_read<iam::ListPolicies>(table, services, list_policies);
  add_change<iam::DeletePolicy>(table, services,
                                [](Identities& next, const iam::DeletePolicyRequest& in) {
                                  return policy::remove_managed_policy(next, *in.policy_arn);
                                });
  add_change<iam::TagPolicy>(table, services,
                             [](Identities& next, const iam::TagPolicyRequest& in) {
                               return policy::tag_policy(next, *in.policy_arn, tags_in(in.tags));
                             });
  add_change<iam::UntagPolicy>(table, services,
                               [](Identities& next, const iam::UntagPolicyRequest& in) {
                                 return policy::untag_policy(next, *in.policy_arn, *in.tag_keys);
                               });
  add_read<iam::ListPolicyTags>(
      table, services,
      [](const Identities& identities, const Context&,
         const iam::ListPolicyTagsRequest& in) -> Result<iam::ListPolicyTagsResponse> {
        const VersionedPolicy& policy = *TRY(policy::policy_of(identities, *in.policy_arn));
        iam::ListPolicyTagsResponse out;
        out.tags = TRY(page_of(
            in, shown_tags(policy.tags).value_or(std::vector<iam::Tag>()),
            [](const iam::Tag& tag) { return *tag.key; }, out));
        return out;
      });
  add_read<iam::ListEntitiesForPolicy>(table, services, list_entities);
  add_versions(table, services);
}

}  // namespace trainyard::api::iam
