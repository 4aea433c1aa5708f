// Changes instance profiles, as IAM's operations do. On AWS a profile gives a role to virtual
// machines. This server has no virtual machines; set-up scripts can create and read profiles.
//
// Each function edits a copy of the snapshot that is not yet published; after an error the copy is
// discarded.
//
// Threads: pure.
// Errors:  those of identity_changes.hpp, with AWS's messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "policy/identities.hpp"

namespace trainyard::policy {

inline constexpr size_t kInstanceProfilesMax = 1'000;  // AWS's default quota

Result<const InstanceProfile*> instance_profile_of(const Identities& identities,
                                                   std::string_view name);
// Returns the profiles with this role, sorted by name.
std::vector<const InstanceProfile*> instance_profiles_with(const Identities& identities,
                                                           std::string_view role);

Result<void> add_instance_profile(Identities& identities, InstanceProfile profile);
Result<void> remove_instance_profile(Identities& identities, std::string_view name);
Result<void> add_role_to_instance_profile(Identities& identities, std::string_view name,
                                          std::string_view role);
Result<void> remove_role_from_instance_profile(Identities& identities, std::string_view name,
                                               std::string_view role);
// The case of tag keys is ignored, as in IAM.
Result<void> tag_instance_profile(Identities& identities, std::string_view name,
                                  const std::vector<Tag>& tags);
Result<void> untag_instance_profile(Identities& identities, std::string_view name,
                                    const std::vector<std::string>& keys);

}  // namespace trainyard::policy
