// A Context has one request's principal, region, deadline and id. It is passed to the operation and
// to the log.
//
// Threads: plain values.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace trainyard::domain {
struct Job;
struct JobKey;
}  // namespace trainyard::domain

namespace trainyard::api {

struct RoleSession;  // auth/temporary_keys.hpp

// The owner may do everything. A user has the rights of the user's policies, a session those of its
// role.
enum class PrincipalKind { owner, user, session };

struct Principal {
  std::string account;  // twelve digits
  // arn:aws:sts::ACCOUNT:assumed-role/NAME/SESSION, arn:aws:iam::ACCOUNT:user/NAME
  std::string arn;
  // The name by which quotas, costs and fair share count. For a session, the user who began it, or
  // else its role.
  std::string name;
  std::string user_id;  // as GetCallerIdentity shows it
  std::string access_key_id;
  std::string role_arn;  // of a session; otherwise ""
  PrincipalKind kind = PrincipalKind::session;
  std::shared_ptr<const RoleSession> session = {};  // nullptr unless kind is session
  // The job with whose attempt the keys expire; nullptr = none.
  std::shared_ptr<const domain::Job> job = {};
  // Only in requests that are made on the principal's behalf (auth/delegation.hpp).
  std::string invoked_by = {};   // ARN of the campaign, or of the user with whose key a peer signs
  std::string peer_key_id = {};  // the peer's key; "" = no peer forwards the request
  std::string source_ip = {};    // of the original request; "" = use the connection's
  // True if the original request used TLS. Valid only with a source_ip.
  bool secure = false;

  bool owner() const { return kind == PrincipalKind::owner; }
};

// Returns the partition of a region's ARNs: "aws", "aws-cn", "aws-us-gov".
inline std::string_view partition_of(std::string_view region) {
  if (region.starts_with("cn-")) return "aws-cn";
  if (region.starts_with("us-gov-")) return "aws-us-gov";
  return "aws";
}

struct Context {
  Principal principal;
  std::string region;      // from the scope of the signature
  std::string request_id;  // sent in the response's head, and written to the log
  Instant now;
  Instant deadline;            // the client's timeout
  std::string source_ip = {};  // of the connection's peer
  bool secure = false;         // over TLS
  std::string user_agent = {};
  Duration clock_offset = {};  // how far `now` is ahead of control's time
  // Returns whether the principal may describe a job. Unset: it may describe none.
  std::function<bool(const Context&, const domain::JobKey&)> may_describe = nullptr;

  // Returns the current time of a job with the Job::clock_offset `of_job`.
  Instant own_time(Duration of_job) const { return now - clock_offset + of_job; }
  bool may_see(const domain::JobKey& job) const { return may_describe && may_describe(*this, job); }
  // Returns may_see() as a function of the job. Lifetime: the context outlives the result.
  std::function<bool(const domain::Job&)> may_see_job() const;
};

}  // namespace trainyard::api
