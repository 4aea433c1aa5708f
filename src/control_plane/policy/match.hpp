// Matches one statement against a request. For the module's own sources and tests.
//
// Threads: pure.
#pragma once

#include <string>

#include "policy/evaluate.hpp"
#include "policy/statement.hpp"

namespace trainyard::policy {

// Tells how directly a statement names the principal, in rising order.
enum class Grant {
  none,     // not at all
  account,  // it names the principal's account
  role,     // it names the role of the principal's session
  direct,   // it names the principal, or belongs to it
};

// A request with the values that are computed once for all statements. Borrows the request.
struct RequestView {
  explicit RequestView(const Request& request);
  const Request& request;
  std::string action;    // in lower case
  bool is_root = false;  // the principal is the account's root
};

// none: the statement does not match.
Grant match_statement(const RequestView& request, const Statement& statement);

}  // namespace trainyard::policy
