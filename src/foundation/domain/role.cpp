#include "domain/role.hpp"

#include <algorithm>

#include "domain/image_policy.hpp"

namespace trainyard::domain {
namespace {

// Converts "arn:aws:iam::123456789012:role/team/trainer" to "role/team/trainer".
std::string_view without_account(std::string_view arn) { return arn.substr(arn.rfind(':') + 1); }

}  // namespace

std::string_view role_name(std::string_view role) { return role.substr(role.rfind('/') + 1); }

bool names_role(std::string_view entry, std::string_view role_arn) {
  if (role_arn.empty()) return false;
  // "role*" is a pattern of names, and must not match the "role/" of every ARN.
  if (entry.find(':') == entry.npos && !entry.starts_with("role/"))
    return matches_pattern(entry, role_name(role_arn));
  return matches_pattern(without_account(entry), without_account(role_arn));
}

bool any_names_role(const std::vector<std::string>& entries, std::string_view role_arn) {
  return std::ranges::any_of(entries,
                             [&](const std::string& entry) { return names_role(entry, role_arn); });
}

}  // namespace trainyard::domain
