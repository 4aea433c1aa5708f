#include "launch/slurm/unix_users.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace trainyard::launch {
namespace {

constexpr size_t kUnixNameBytesMax = 32;  // the limit of useradd

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Result<void> check_account(const UnixUser& user, const UnixUserRules& rules) {
  const bool is_systems = user.user_id < kOrdinaryUserIdMin || user.user_id == kOverflowUserId;
  if (!is_systems || rules.system_accounts.contains(user.name)) return {};
  return denied("the account '" + user.name + "' (uid " + std::to_string(user.user_id) +
                ") is a system account: jobs run as one only if slurm.system_accounts lists it");
}

}  // namespace

bool is_unix_name(std::string_view name) {
  return !name.empty() && name.size() <= kUnixNameBytesMax &&
         (is_letter(name.front()) || name.front() == '_') && std::ranges::all_of(name, [](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
         });
}

Result<std::map<std::string, UnixUser>> resolve_unix_users(const UnixUserRules& rules,
                                                           const FindAccount& find) {
  std::map<std::string, UnixUser> users;
  for (const auto& [principal, name] : rules.names) {
    const std::string key = "slurm.users.\"" + principal + "\".unix_user";
    if (!is_unix_name(name))
      return invalid(key + ": '" + shorten(name, 40) + "' is not the name of a Unix account");
    UnixUser user = TRY(find(name).in(key));
    TRY(check_account(user, rules).in(key));
    users.insert_or_assign(principal, std::move(user));
  }
  return users;
}

}  // namespace trainyard::launch
