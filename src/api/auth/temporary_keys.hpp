// Temporary keys of a role, for one attempt of a job. Stateless: the session token carries who it is for and
// until when, sealed with a secret of this data directory, so that any server over that directory can check
// it and nothing is kept.
//
//   access key id   ASIA + 16 letters
//   secret          HMAC of the id under the sealing secret
//   session token   base64 of: version, expiry, id, role, session, and an HMAC over all of it
//
// Threads: callable from anywhere. Format: the layout is private to this file; version 1 is the first byte.
#pragma once

#include <string>
#include <string_view>

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

// For whom keys are.
struct RoleSession {
  std::string role_arn;      // arn:aws:iam::ACCOUNT:role/NAME
  std::string session_name;  // the job's attempt: "SageMaker-mnist-1-a1"
};

// `sealing_secret`: Settings.temporary_key_secret. Requires: role and session hold at most 2,048 bytes each.
TemporaryKeys issue_keys(const std::string& sealing_secret, const RoleSession& session, Instant now,
                         Duration lifetime, Random& random);

struct ResolvedKeys {
  enum class State { good, forged, expired } state = State::forged;
  RoleSession session;
  std::string secret_access_key;
};
ResolvedKeys resolve_keys(const std::string& sealing_secret, std::string_view access_key_id,
                          std::string_view session_token, Instant now);

}  // namespace trainyard::api
