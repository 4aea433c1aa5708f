#include "operations/job_role.hpp"

#include "base/text.hpp"
#include "domain/role.hpp"

namespace trainyard::api {
namespace {

bool is_role_arn(std::string_view text) {
  const auto parts = split(text, ':');
  return parts.size() == 6 && parts[0] == "arn" && parts[2] == "iam" &&
         parts[5].starts_with("role/") && !domain::role_name(parts[5]).empty();
}

}  // namespace

std::string own_role(std::string_view arn, std::string_view account) {
  if (!is_role_arn(arn)) return std::string(arn);
  return std::string("arn:aws:iam::").append(account).append(arn.substr(arn.rfind(':')));
}

std::string canonical_role(const policy::Identities* identities, const std::string& arn) {
  const policy::Role* role = identities ? identities->find_role(domain::role_name(arn)) : nullptr;
  return role ? identities->arn_of(*role) : arn;
}

Result<std::string> job_role(const Settings& settings, std::string_view account,
                             const std::string& arn) {
  if (!is_role_arn(arn))
    return invalid("'" + shorten(arn, 200) +
                   "' is not the ARN of a role: use arn:aws:iam::ACCOUNT:role/NAME");
  const auto identities = settings.identities ? settings.identities() : nullptr;
  return canonical_role(identities.get(), own_role(arn, account));
}

}  // namespace trainyard::api
