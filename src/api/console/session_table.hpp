// SessionTable stores one-time tokens, and the console sessions that they open.
//
// A token is shown once, opens one session, and expires after kTokenLifetime. A session expires
// after kSessionLifetime, or earlier with the keys that opened it. Both are 256 random bits.
// Only their hashes are stored, so the duration of a comparison reveals nothing. The table is in
// memory: a restart of the server ends all sessions.
//
// A session grants no rights. It names a principal, whose rights are looked up at each use.
//
// Threads: callable from anywhere. Errors: none. Limits: a new entry beyond a limit evicts the
// oldest one, that of the same principal first.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "auth/delegation.hpp"
#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "operations/console_token.hpp"

namespace trainyard::api::console {

inline constexpr Duration kTokenLifetime = 5min;     // enough to click a link
inline constexpr Duration kSessionLifetime = 12h;    // a working day
inline constexpr size_t kTokensMax = 1024;           // some KiB each
inline constexpr size_t kSessionsMax = 4096;         // likewise
inline constexpr size_t kSessionsPerPrincipal = 64;  // browsers of one person

// SignedIn is the principal of a session.
struct SignedIn {
  Delegation delegation;
  std::string arn;
  std::string access_key_id;  // the key that signed in: the session ends when it is inactive
  std::string region;         // which pages show first
  Instant expires;            // of the session
};

class SessionTable {
 public:
  explicit SessionTable(Random& random) : random_(random) {}

  // Makes a token for the principal. The session also ends at `who.expires`, unless that is
  // Instant{}.
  ConsoleToken issue_token(SignedIn who, Instant now);
  // Uses up a token. Returns nothing if it is unknown, used or expired.
  std::optional<SignedIn> redeem(std::string_view token, Instant now);
  // Opens a session and returns its id, the secret of a cookie.
  std::string open(SignedIn who, Instant now);
  // Returns nothing if the session is unknown, closed or expired.
  std::optional<SignedIn> find(std::string_view id, Instant now) const;
  void close(std::string_view id);

 private:
  using Entries = std::map<std::string, SignedIn>;  // by the hash of the secret

  // Removes expired and old entries, so that a new entry of `who` is within the limits.
  static void evict(Entries& entries, const SignedIn& who, size_t entries_max, Instant now);

  Random& random_;
  mutable Mutex mutex_;
  Entries tokens_ GUARDED_BY(mutex_);
  Entries sessions_ GUARDED_BY(mutex_);
  std::map<std::string, Instant> ends_ GUARDED_BY(mutex_);  // limits of sessions, by token's hash
};

}  // namespace trainyard::api::console
