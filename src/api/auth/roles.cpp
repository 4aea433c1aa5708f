#include "auth/roles.hpp"

#include "base/text.hpp"
#include "signing/signing.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kRoleNameBytesMax = 64;  // as in IAM
constexpr std::string_view kRoleNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,.@-";

}  // namespace

std::string role_arn(std::string_view account, std::string_view name) {
  return std::string("arn:aws:iam::").append(account).append(":role/").append(name);
}

std::string assumed_role_arn(std::string_view account, std::string_view role,
                             std::string_view session) {
  return std::string("arn:aws:sts::")
      .append(account)
      .append(":assumed-role/")
      .append(role_name(role))
      .append("/")
      .append(session);
}

std::string role_id(std::string_view role) {
  return to_upper("AROA" + signing::sha256_hex(role).substr(0, 17));
}

Result<std::string> role_of_arn(std::string_view arn, std::string_view account) {
  const auto parts = split(arn, ':');
  if (parts.size() != 6 || parts[0] != "arn" || parts[2] != "iam" || !parts[5].starts_with("role/"))
    return invalid("'" + shorten(arn, 200) +
                   "' is not the ARN of a role: arn:aws:iam::ACCOUNT:role/NAME");
  const std::string_view name = role_name(parts[5]);
  if (name.empty() || name.size() > kRoleNameBytesMax ||
      name.find_first_not_of(kRoleNameCharacters) != std::string_view::npos)
    return invalid("'" + shorten(name, 100) + "' cannot be the name of a role");
  if (parts[4] != account)
    return not_found("the role " + shorten(arn, 200) + " does not belong to the account " +
                     std::string(account));
  return std::string(name);
}

bool is_reserved_role(std::string_view role) {
  return to_lower(role_name(role)).starts_with("trainyard");
}

}  // namespace trainyard::api
