// Changes of instance profiles, as IAM's operations make them: a profile hands one role to virtual
// machines. This server has none, so a profile is a description that set-up scripts create and
// read.
//
// Each function edits a copy of the snapshot that is not published yet; after an error the copy is
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
// The profiles with this role, by name.
std::vector<const InstanceProfile*> instance_profiles_with(const Identities& identities,
                                                           std::string_view role);

Result<void> add_instance_profile(Identities& identities, InstanceProfile profile);
Result<void> remove_instance_profile(Identities& identities, std::string_view name);
Result<void> add_role_to_instance_profile(Identities& identities, std::string_view name,
                                          std::string_view role);
Result<void> remove_role_from_instance_profile(Identities& identities, std::string_view name,
                                               std::string_view role);
// Tag keys compare ignoring case, as IAM's.
Result<void> tag_instance_profile(Identities& identities, std::string_view name,
                                  const std::vector<Tag>& tags);
Result<void> untag_instance_profile(Identities& identities, std::string_view name,
                                    const std::vector<std::string>& keys);

}  // namespace trainyard::policy
