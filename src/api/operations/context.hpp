// A Context is one request's principal, region, deadline and request id: one value that travels with the request into every
// operation and into the log.
//
// Threads: plain values.
#pragma once

#include <memory>
#include <string>

#include "base/time.hpp"

namespace trainyard::domain {
struct Job;
}

namespace trainyard::api {

struct RoleSession;  // auth/temporary_keys.hpp

// The owner may do everything; a user has the user's policies; a session has those of its role.
enum class PrincipalKind { owner, user, session };

struct Principal {
  std::string account;  // twelve digits
  std::string arn;      // arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION, arn:aws:iam::ACCOUNT:user/NAME
  std::string name;  // the user's; of a session, the user's at the beginning: quotas, accounting, fair share
  std::string user_id;  // as GetCallerIdentity shows it
  std::string access_key_id;
  std::string role_arn;  // of a session; "" for the others
  PrincipalKind kind = PrincipalKind::session;
  std::shared_ptr<const RoleSession> session = {};  // nullptr unless kind is session
  std::shared_ptr<const domain::Job> job = {};      // the one that the keys end with; nullptr: none
  // Of requests that are made on the principal's behalf (auth/delegation.hpp).
  std::string invoked_by = {};  // ARN: of the campaign, of the user whose key another server signs with
  std::string peer_key_id =
      {};  // the other server's key; "" = the principal's own requests come to this server
  std::string source_ip = {};  // of the request that this one follows from; "" = the connection's
  bool secure = false;         // that one, of a source_ip

  bool owner() const { return kind == PrincipalKind::owner; }
};

struct Context {
  Principal principal;
  std::string region;      // of the signature's scope
  std::string request_id;  // in the reply's head and in the server's log
  Instant now;
  Instant deadline;            // when the client will have given up
  std::string source_ip = {};  // of the connection's peer
  bool secure = false;         // over TLS
  std::string user_agent = {};
  Duration clock_offset = {};  // what `now` is ahead of control's time

  // The present in the own time of a job with that Job::clock_offset.
  Instant own_time(Duration of_job) const { return now - clock_offset + of_job; }
};

}  // namespace trainyard::api
