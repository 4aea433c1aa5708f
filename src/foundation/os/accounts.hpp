// Looks up Unix accounts of this machine in all sources that nsswitch.conf names (files, LDAP,
// SSSD).
//
// Threads: callable from anywhere. Errors: not_found, unavailable (a source does not answer).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"

namespace trainyard::os {

struct Account {
  std::string name;
  uint32_t user_id = 0, group_id = 0;
};

Result<Account> find_account(const std::string& name);
Result<Account> find_account(uint32_t user_id);
// Returns the effective user ID of this process.
uint32_t own_user_id();

}  // namespace trainyard::os
