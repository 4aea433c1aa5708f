#include "os/accounts.hpp"

#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace trainyard::os {
namespace {

// An entry of a directory service has a few hundred bytes.
constexpr size_t kEntryBytesMax = 64 << 10;

template <class Find>
Result<Account> look_up(const std::string& what, Find find) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kEntryBytesMax);
  int error = 0;
  do error = find(&entry, buffer.data(), buffer.size(), &found);
  while (error == EINTR);
  if (found != nullptr) return Account{entry.pw_name, entry.pw_uid, entry.pw_gid};
  // These numbers too mean that no source has the account.
  if (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM)
    return not_found("account " + what + " not found on this machine");
  Error fault = from_errno("looking up the account " + what, error);
  fault.kind = Kind::unavailable;
  return fault;
}

}  // namespace

Result<Account> find_account(const std::string& name) {
  return look_up("'" + name + "'", [&](passwd* entry, char* buffer, size_t size, passwd** found) {
    return ::getpwnam_r(name.c_str(), entry, buffer, size, found);
  });
}

Result<Account> find_account(uint32_t user_id) {
  return look_up(std::to_string(user_id),
                 [&](passwd* entry, char* buffer, size_t size, passwd** found) {
                   return ::getpwuid_r(user_id, entry, buffer, size, found);
                 });
}

uint32_t own_user_id() { return ::geteuid(); }

}  // namespace trainyard::os
