// Describes a principal in requests that are made on its behalf: by its campaigns, and by this
// server when it forwards a request to another server.
//
// A description grants no rights. The server that receives it decides by its own policies at that
// time (principals.hpp).
//
// Threads: plain values, pure functions. Errors: invalid, naming the member.
#pragma once

#include <string>
#include <string_view>

#include "auth/temporary_keys.hpp"
#include "base/result.hpp"
#include "operations/context.hpp"

namespace trainyard::api {

// The header of a request that another server signs on a principal's behalf: format_delegation() in
// base64.
inline constexpr std::string_view kDelegationHeader = "x-amz-trainyard-principal";
// Enough for a session with all its policies, with quotes escaped, and small enough for a session
// token and a header.
inline constexpr size_t kDelegationBytesMax = 32 << 10;

struct Delegation {
  PrincipalKind kind = PrincipalKind::user;
  std::string name;  // the user's name; for a session, RoleSession::person
  // The UserId of GetCallerIdentity. A later user with the same name has another one.
  std::string id;
  RoleSession session = {};                       // only for kind session
  std::string invoked_by = {}, peer_key_id = {};  // as in Principal
  std::string source_ip = {};                     // of the original request
  bool secure = false;                            // the original request used TLS
};

Delegation delegation_of(const Context& context);
// Errors: exhausted: the text would exceed kDelegationBytesMax.
Result<std::string> format_delegation(const Delegation& delegation);
Result<Delegation> parse_delegation(std::string_view text);

}  // namespace trainyard::api
