// Matches one statement against a request. Only this module and its tests include it.
//
// Threads: pure.
#pragma once

#include <string>

#include "policy/evaluate.hpp"
#include "policy/statement.hpp"

namespace trainyard::policy {

// PrincipalMatch says how directly a statement names the principal, in ascending order.
enum class PrincipalMatch {
  none,     // the statement does not match
  account,  // it names the principal's account
  role,     // it names the role of the principal's session
  direct,   // it names the principal, or is part of an identity policy of it
};

// A request with values that are computed once for all statements. The request must outlive it.
struct RequestView {
  explicit RequestView(const Request& request);
  const Request& request;
  std::string action;    // in lower case
  bool is_root = false;  // the principal is the account's root
};

// Returns none if the statement does not match.
PrincipalMatch match_statement(const RequestView& request, const Statement& statement);

}  // namespace trainyard::policy
