// Principals finds principals by the keys that requests are signed with, and by descriptions of
// principals (delegation.hpp).
//
// A described principal is looked up at each use. It is rejected if it is no longer the same: the
// user was deleted, even if another one has the name now; the role was deleted or created again;
// the session has expired; the job's attempt has ended.
//
// Threads: callable from many threads at once. Lifetime: settings and control outlive it.
// Errors:  denied, with the text of AccessDenied.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "auth/delegation.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"

namespace trainyard::api {

class Principals {
 public:
  Principals(const Settings& settings, control::Control& control);
  ~Principals();

  // Returns the secret of a long-term key, and sets its principal. Returns nothing if the key is
  // unknown or inactive.
  std::optional<std::string> find_by_key(std::string_view id, Principal& principal) const;
  // Returns nothing if the keys expire with a job's attempt, and it has ended.
  std::optional<Principal> find_by_session(RoleSession session) const;
  // Finds a principal that this server described earlier.
  Result<Principal> find_stored(const Delegation& delegation, Instant now) const;
  // Finds the principal on whose behalf `peer` made a verified request: the user or role of this
  // server with the described name, never an owner. The principal's rights are those on this
  // server.
  Result<Principal> find_for_peer(const Delegation& delegation, const Principal& peer,
                                  Instant now) const;

 private:
  struct EndedAttempts;
  const policy::Peer* find_peer(const std::vector<policy::Peer>& peers,
                                std::string_view key_id) const;
  bool is_owner(const std::string& user) const;

  const Settings& settings_;
  control::Control& control_;
  const std::unique_ptr<EndedAttempts> ended_attempts_;
};

}  // namespace trainyard::api
