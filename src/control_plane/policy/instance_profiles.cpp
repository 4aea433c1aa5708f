#include "policy/instance_profiles.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "policy/identity_changes.hpp"

namespace trainyard::policy {
Result<const InstanceProfile*> instance_profile_of(const Identities& identities,
                                                   std::string_view name) {
  const InstanceProfile* profile = identities.find_instance_profile(name);
  if (!profile) return not_found("Instance Profile " + std::string(name) + " cannot be found.");
  return profile;
}

std::vector<const InstanceProfile*> instance_profiles_with(const Identities& identities,
                                                           std::string_view role) {
  std::vector<const InstanceProfile*> found;
  for (const auto& [name, profile] : identities.instance_profiles())
    if (profile->role == role) found.push_back(profile.get());
  return found;
}

Result<void> add_instance_profile(Identities& identities, InstanceProfile profile) {
  const auto& all = identities.instance_profiles();
  if (std::ranges::any_of(
          all, [&](const auto& each) { return equals_ignoring_case(each.first, profile.name); }))
    return conflict("Instance Profile " + profile.name + " already exists.");
  if (all.size() >= kInstanceProfilesMax)
    return quota_reached("InstanceProfilesPerAccount", kInstanceProfilesMax);
  profile.tags = TRY(with_tags({}, profile.tags));
  identities.put(std::move(profile));
  return {};
}

Result<void> remove_instance_profile(Identities& identities, std::string_view name) {
  const InstanceProfile* profile = TRY(instance_profile_of(identities, name));
  if (!profile->role.empty())
    return conflict("Cannot delete entity, must remove roles from instance profile first.");
  identities.remove_instance_profile(std::string(profile->name));
  return {};
}

Result<void> add_role_to_instance_profile(Identities& identities, std::string_view name,
                                          std::string_view role) {
  InstanceProfile profile = *TRY(instance_profile_of(identities, name));
  const Role* added = TRY(role_of(identities, role));
  if (!profile.role.empty()) return quota_reached("InstanceSessionsPerInstanceProfile", 1);
  profile.role = added->name;
  identities.put(std::move(profile));
  return {};
}

Result<void> remove_role_from_instance_profile(Identities& identities, std::string_view name,
                                               std::string_view role) {
  InstanceProfile profile = *TRY(instance_profile_of(identities, name));
  // The profile may contain a role that was removed from the configuration file.
  if (profile.role != role)
    return not_found("The role with name " + std::string(role) + " cannot be found.");
  profile.role.clear();
  identities.put(std::move(profile));
  return {};
}

Result<void> tag_instance_profile(Identities& identities, std::string_view name,
                                  const std::vector<Tag>& tags) {
  InstanceProfile profile = *TRY(instance_profile_of(identities, name));
  profile.tags = TRY(with_tags(std::move(profile.tags), tags));
  identities.put(std::move(profile));
  return {};
}

Result<void> untag_instance_profile(Identities& identities, std::string_view name,
                                    const std::vector<std::string>& keys) {
  InstanceProfile profile = *TRY(instance_profile_of(identities, name));
  profile.tags = without_tags(std::move(profile.tags), keys);
  identities.put(std::move(profile));
  return {};
}

}  // namespace trainyard::policy
