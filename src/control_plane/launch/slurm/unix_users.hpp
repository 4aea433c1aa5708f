// UnixUser is the Unix account as which a Slurm job runs. The administrator maps the server's users
// and roles to accounts in the table [slurm.users] of the configuration; requests, job files and
// images cannot choose one.
//
// System accounts (root, daemons) are rejected unless the administrator lists them: a typing error
// must not give a user's jobs the rights of root.
//
// Threads: pure functions. Errors: invalid, with the key of the configuration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/result.hpp"

namespace trainyard::launch {

// Without a name: the server's own account.
struct UnixUser {
  std::string name = {};
  uint32_t user_id = 0, group_id = 0;
  bool operator==(const UnixUser&) const = default;
};

// Ids below belong to system accounts on every distribution (UID_MIN of login.defs).
inline constexpr uint32_t kOrdinaryUserIdMin = 1000;
// The overflow user, which stands for users of other machines and namespaces.
inline constexpr uint32_t kOverflowUserId = 65534;

struct UnixUserRules {
  // Account names by user or role of the server; "*": all others.
  std::map<std::string, std::string> names;
  std::set<std::string> system_accounts;  // system accounts that may be used
};

// Looks up an account of this machine. Errors: not_found.
using FindAccount = std::function<Result<UnixUser>(const std::string& name)>;

// Returns the accounts by user or role. Errors also: not_found (an unknown account), denied (a
// system account that is not in the list).
Result<std::map<std::string, UnixUser>> resolve_unix_users(const UnixUserRules& rules,
                                                           const FindAccount& find);

// Returns true for names that are safe arguments of Slurm's programs, and that useradd accepts.
bool is_unix_name(std::string_view name);

}  // namespace trainyard::launch
