// Implements the operations on instance profiles, which have no effect: no machine gets their role.
#include "policy/instance_profiles.hpp"

#include "iam/common.hpp"

namespace trainyard::api::iam {
namespace {

using policy::InstanceProfile;

// Describes a profile. `whole`: with tags, which lists leave out.
iam::InstanceProfile to_shape(const Identities& identities, const InstanceProfile& profile,
                              bool whole) {
  iam::InstanceProfile out;
  out.path = profile.path;
  out.instance_profile_name = profile.name;
  out.instance_profile_id = profile.id;
  out.arn = identities.arn_of(profile);
  out.create_date = profile.created;
  out.roles.emplace();
  if (!profile.role.empty())
    out.roles->push_back(
        shown_role(identities, role_or_undefined(identities, profile.role), false));
  if (whole) out.tags = shown_tags(profile.tags);
  return out;
}

// Returns a page of `all`.
template <class In, class Out>
Result<Out> list_of(const Identities& identities, const In& in,
                    const std::vector<const InstanceProfile*>& all) {
  std::vector<iam::InstanceProfile> described;
  for (const InstanceProfile* profile : all)
    described.push_back(to_shape(identities, *profile, false));
  Out out;
  out.instance_profiles = TRY(page_of(
      in, std::move(described),
      [](const iam::InstanceProfile& profile) { return *profile.instance_profile_name; }, out));
  return out;
}

void add_reads(OperationTable& table, const Services& services) {
  add_read<iam::GetInstanceProfile>(
      table, services,
      [](const Identities& identities, const Context&,
         const iam::GetInstanceProfileRequest& in) -> Result<iam::GetInstanceProfileResponse> {
        const auto* found = TRY(policy::instance_profile_of(identities, *in.instance_profile_name));
        return iam::GetInstanceProfileResponse{.instance_profile =
                                                   to_shape(identities, *found, true)};
      });
  add_read<iam::ListInstanceProfiles>(
      table, services,
      [](const Identities& identities, const Context&, const iam::ListInstanceProfilesRequest& in) {
        std::vector<const InstanceProfile*> all;
        for (const auto& [name, profile] : identities.instance_profiles())
          if (has_prefix(profile->path, in.path_prefix)) all.push_back(profile.get());
        return list_of<iam::ListInstanceProfilesRequest, iam::ListInstanceProfilesResponse>(
            identities, in, all);
      });
  add_read<iam::ListInstanceProfilesForRole>(
      table, services,
      [](const Identities& identities, const Context&,
         const iam::ListInstanceProfilesForRoleRequest& in) {
        return list_of<iam::ListInstanceProfilesForRoleRequest,
                       iam::ListInstanceProfilesForRoleResponse>(
            identities, in, policy::instance_profiles_with(identities, *in.role_name));
      });
  add_read<iam::ListInstanceProfileTags>(
      table, services,
      [](const Identities& identities, const Context&,
         const iam::ListInstanceProfileTagsRequest& in)
          -> Result<iam::ListInstanceProfileTagsResponse> {
        const auto* found = TRY(policy::instance_profile_of(identities, *in.instance_profile_name));
        iam::ListInstanceProfileTagsResponse out;
        out.tags = TRY(page_of(
            in, shown_tags(found->tags).value_or(std::vector<iam::Tag>()),
            [](const iam::Tag& tag) { return *tag.key; }, out));
        return out;
      });
}

}  // namespace

void add_instance_profiles(OperationTable& table, const Services& services) {
  add_edit<iam::CreateInstanceProfile>(
      table, services, false,
      [&services](Identities& next, const Context& context,
                  const iam::CreateInstanceProfileRequest& in)
          -> Outcome<iam::CreateInstanceProfileResponse> {
        InstanceProfile profile;
        profile.name = *in.instance_profile_name;
        profile.path = in.path.value_or("/");
        profile.id = services.identities->make_id("AIPA");
        profile.created = context.now;
        profile.tags = tags_in(in.tags);
        TRY(policy::add_instance_profile(next, std::move(profile)));
        return iam::CreateInstanceProfileResponse{
            .instance_profile =
                to_shape(next, *next.find_instance_profile(*in.instance_profile_name), true)};
      });
  add_change<iam::DeleteInstanceProfile>(
      table, services, [](Identities& next, const iam::DeleteInstanceProfileRequest& in) {
        return policy::remove_instance_profile(next, *in.instance_profile_name);
      });
  add_change<iam::AddRoleToInstanceProfile>(
      table, services, [](Identities& next, const iam::AddRoleToInstanceProfileRequest& in) {
        return policy::add_role_to_instance_profile(next, *in.instance_profile_name, *in.role_name);
      });
  add_change<iam::RemoveRoleFromInstanceProfile>(
      table, services, [](Identities& next, const iam::RemoveRoleFromInstanceProfileRequest& in) {
        return policy::remove_role_from_instance_profile(next, *in.instance_profile_name,
                                                         *in.role_name);
      });
  add_change<iam::TagInstanceProfile>(
      table, services, [](Identities& next, const iam::TagInstanceProfileRequest& in) {
        return policy::tag_instance_profile(next, *in.instance_profile_name, tags_in(in.tags));
      });
  add_change<iam::UntagInstanceProfile>(
      table, services, [](Identities& next, const iam::UntagInstanceProfileRequest& in) {
        return policy::untag_instance_profile(next, *in.instance_profile_name, *in.tag_keys);
      });
  add_reads(table, services);
}

}  // namespace trainyard::api::iam
