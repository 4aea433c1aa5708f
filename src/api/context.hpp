// Who asks, for which region, until when: one value that travels with a request into every operation, and
// into the log.
//
// Threads: plain values.
#pragma once

#include <string>

#include "base/time.hpp"

namespace trainyard::api {

struct Principal {
  std::string account;  // twelve digits
  std::string arn;      // arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION
  std::string name;     // the user's or the role's: whose quotas count, and whose share it is
  std::string user_id;  // as GetCallerIdentity shows it
  std::string access_key_id;
  std::string role_arn;  // of a job's temporary keys; "" for the owner
  bool owner() const { return role_arn.empty(); }
};

struct Context {
  Principal principal;
  std::string region;      // of the signature's scope
  std::string request_id;  // in the reply's head and in the server's log
  Instant now;
  Instant deadline;  // when the client will have given up
};

}  // namespace trainyard::api
