// Describes a principal in requests that are made on its behalf: by its campaigns, later, and by this server to another one
// that a request is forwarded to.
//
// A description gives no rights. What it may do is decided at its use, by the policies of that server at that time
// (principals.hpp).
//
// Threads: plain values, pure functions. Errors: invalid, naming the member.
#pragma once

#include <string>
#include <string_view>

#include "auth/temporary_keys.hpp"
#include "base/result.hpp"
#include "operations/context.hpp"

namespace trainyard::api {

// A header of a request that another server signs and makes on a principal's behalf: format_delegation() in base64.
inline constexpr std::string_view kDelegationHeader = "x-amz-trainyard-principal";
// A session with all its policies, and quotes escaped; a token and a header can hold it.
inline constexpr size_t kDelegationBytesMax = 32 << 10;

struct Delegation {
  PrincipalKind kind = PrincipalKind::user;
  std::string name;          // the user's; of a session, the person's
  std::string id;            // as GetCallerIdentity shows it: a user of the same name made later has another
  RoleSession session = {};  // of kind session
  std::string invoked_by = {}, peer_key_id = {};  // of Principal
  std::string source_ip = {};                     // of the request that this follows from
  bool secure = false;                            // it came over TLS
};

Delegation delegation_of(const Context& context);
// Errors: exhausted, past kDelegationBytesMax.
Result<std::string> format_delegation(const Delegation& delegation);
Result<Delegation> parse_delegation(std::string_view text);

}  // namespace trainyard::api
