// Whether one statement concerns a request. For policy's own sources and tests.
//
// Threads: pure.
#pragma once

#include <string>

#include "policy/evaluate.hpp"
#include "policy/statement.hpp"

namespace trainyard::policy {

// How directly a statement concerns the principal, in rising order.
enum class Grant {
  none,     // it does not
  account,  // it names the principal's account
  role,     // it names the role of the principal's session
  direct,   // it names the principal, or belongs to it
};

// A request with what is worked out once for all statements. Borrows the request.
struct RequestView {
  explicit RequestView(const Request& request);
  const Request& request;
  std::string action;    // in lower case
  bool is_root = false;  // the principal is the account's root
};

// none: the statement does not match.
Grant match_statement(const RequestView& request, const Statement& statement);

}  // namespace trainyard::policy
