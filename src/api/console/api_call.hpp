// Turns a page's request into a signed request of an operation, on behalf of a session's principal.
//
// The API's handler treats the request like any client's: it verifies the signature, finds the
// principal's current state, and checks its rights and limits and the input. Pages can call only
// operations that read, that start a job or save a template, and that change the keys or the
// attached policies of a user.
//
// Threads: pure functions; `random` is callable from anywhere. Errors: not_found (an operation that
// pages do not call), exhausted (the principal's description is too long), invalid (the region).
#pragma once

#include <string>
#include <string_view>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "console/session_table.hpp"
#include "net/http_server.hpp"
#include "operations/services.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api::console {

// Returns the operation, or nullptr if pages may not call it.
const shapes::OperationShape* find_page_operation(std::string_view service,
                                                  std::string_view operation);

// Describes the session's principal for a request from this browser. Conditions of policies on the
// address and TLS apply to the browser's connection.
Delegation delegation_for(const SignedIn& who, const net::RequestHead& from);

// Returns whether the text has the form of a region's name.
bool is_region(std::string_view text);

// Returns the address of a connection's peer, without its port.
std::string address_of(std::string_view peer);

struct PageCall {
  const shapes::OperationShape& operation;
  std::string region;
  std::string body;  // JSON
};
// Signs the call on behalf of `who`. `sealing_secret`: Settings::temporary_key_secret.
Result<net::Request> sign_call(PageCall call, const SignedIn& who, const net::RequestHead& from,
                               const std::string& sealing_secret, Instant now, Random& random);

}  // namespace trainyard::api::console
