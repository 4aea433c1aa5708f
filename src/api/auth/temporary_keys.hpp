// Makes and checks the temporary keys of a role, for one attempt of a job or for a session of
// AssumeRole. They need no storage: the session token contains the session, sealed with a secret of
// the data directory, so any server with that directory can check it.
//
//   access key id   ASIA + 16 letters
//   secret          HMAC of the id under the sealing secret
//   session token   base64 of: version, expiry, id, session, and an HMAC over all of it
//
// Threads: callable from anywhere. Format: the layout is private to this file; the version is the
// first byte. Tokens of version 1, which do not name their attempt, count as expired: agents fetch
// new ones when they connect.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::api {

struct TemporaryKeys {
  std::string access_key_id;
  std::string secret_access_key;
  std::string session_token;
  Instant expires;
};

struct RoleSession {
  std::string role_arn;      // arn:aws:iam::ACCOUNT:role/NAME
  std::string session_name;  // the job's attempt: "SageMaker-j17a1"
  // The job's attempt with which the keys expire: set for a job's own keys, and for sessions
  // assumed with them. job_name "" = none.
  std::string job_region = {};
  std::string job_name = {};
  uint64_t job_number = 0;
  uint32_t attempt = 0;
  bool assumed = false;              // made by AssumeRole
  std::string person = {};           // the user who began the chain, for costs and quotas
  std::string source_identity = {};  // once set, the same for the whole chain
  // session policies: documents, and ARNs of managed policies
  std::vector<std::string> policies = {};
  bool limited = false;  // the session has session policies
  Instant issued = {};   // set by issue_keys
  Instant expires = {};  // set by resolve_keys
};

inline constexpr size_t kSessionPoliciesMax = 11;  // one document and ten ARNs, as on AWS

// `sealing_secret`: Settings.temporary_key_secret. Requires: at most 2,048 bytes in each text, and
// at most kSessionPoliciesMax policies.
TemporaryKeys issue_keys(const std::string& sealing_secret, const RoleSession& session, Instant now,
                         Duration lifetime, Random& random);

// Makes keys with which this server acts for a principal described by format_delegation(). They
// never leave this server.
TemporaryKeys issue_delegated_keys(const std::string& sealing_secret, std::string_view delegation,
                                   Instant now, Duration lifetime, Random& random);

struct ResolvedKeys {
  enum class State { valid, forged, expired } state = State::forged;
  RoleSession session;
  // Set instead of the session for issue_delegated_keys(); "" = keys of a session.
  std::string delegation;
  std::string secret_access_key;
};
ResolvedKeys resolve_keys(const std::string& sealing_secret, std::string_view access_key_id,
                          std::string_view session_token, Instant now);

}  // namespace trainyard::api
