// IdentityStore has the account's users, groups, roles, policies and access keys. It joins those of
// the configuration file with the records of the ledger, changes the records, and records the last
// use of each key.
//
// Threads:  call from anywhere. snapshot() and key_used() do not block on the ledger; change()
//           waits for its commit, so it must not run on the thread that commits.
// Errors:   of change(): those of the change (policy/identity_changes.hpp), and control's.
// Lifetime: control, clock and random outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/random.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "control/control.hpp"
#include "policy/identities.hpp"

namespace trainyard::api {

// The last accepted use of a key.
struct KeyUse {
  Instant at;
  std::string region;
  std::string service;
};

class IdentityStore {
 public:
  // `sealing_key`: 32 random bytes, kept outside the ledger, that encrypt secret access keys.
  IdentityStore(control::Control& control, std::string sealing_key, policy::Identities seed,
                Random& random);

  // Returns the current identities; never nullptr.
  std::shared_ptr<const policy::Identities> snapshot() const;
  // Replaces the identities of the configuration file, after it was reloaded.
  void set_configured(policy::Identities seed);

  // Runs `edit` on a copy of the snapshot and makes the result durable. Repeats both if another
  // writer changed records meanwhile.
  Result<void> change(const std::function<Result<void>(policy::Identities&)>& edit);

  // Makes a new access key of `user`, with its secret in clear and sealed. Does not store it.
  policy::AccessKey make_key(std::string user, Instant now);
  // Makes an id: `prefix` ("AIDA") and 17 random letters and digits.
  std::string make_id(std::string_view prefix);

  // Records a use of a key. write_uses() makes it durable.
  void key_used(std::string_view id, Instant at, std::string_view region, std::string_view service);
  std::optional<KeyUse> last_use(const std::string& id) const;
  // Makes new uses of keys durable. Call it regularly, and when the server stops.
  Result<void> write_uses();

 private:
  std::shared_ptr<const policy::Identities> join(const policy::Identities& seed,
                                                 const domain::Records& records) const
      REQUIRES(mutex_);

  control::Control& control_;
  const std::string sealing_key_;
  Random& random_;

  Mutex changing_;  // held by one change() at a time

  mutable Mutex mutex_;
  policy::Identities seed_ GUARDED_BY(mutex_);
  // The records in joined_.
  mutable std::shared_ptr<const domain::Records> records_ GUARDED_BY(mutex_);
  mutable std::shared_ptr<const policy::Identities> joined_ GUARDED_BY(mutex_);
  // Invalid records, each logged once.
  mutable std::set<domain::RecordKey> set_aside_ GUARDED_BY(mutex_);

  mutable Mutex uses_mutex_;
  std::map<std::string, KeyUse, std::less<>> uses_ GUARDED_BY(uses_mutex_);  // since the start
  std::set<std::string> unwritten_ GUARDED_BY(uses_mutex_);
};

}  // namespace trainyard::api
