// Makes principals from the keys that requests are signed with, and from descriptions of principals (delegation.hpp).
//
// A described principal is looked up at each use. It is refused when it is no longer the same: the user, or the user's name,
// was deleted; the role was created again; the session has expired; the attempt of the job that its keys belong to is over.
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

  // The secret of a lasting key, and its principal. Nothing: unknown, or inactive.
  std::optional<std::string> of_key(std::string_view id, Principal& principal) const;
  // Nothing: the attempt that its keys end with is over.
  std::optional<Principal> of_session(RoleSession session) const;
  // One that this server described itself.
  Result<Principal> of_stored(const Delegation& delegation, Instant now) const;
  // The principal on whose behalf `peer` made a verified request: a user or a defined role of this server with the described
  // name, never an owner. It has the rights that it has on this server.
  Result<Principal> of_peer(const Delegation& delegation, const Principal& peer, Instant now) const;

 private:
  struct AttemptsOver;
  const policy::Peer* find_peer(const std::vector<policy::Peer>& peers, std::string_view key_id) const;
  bool is_owner(const std::string& user) const;

  const Settings& settings_;
  control::Control& control_;
  const std::unique_ptr<AttemptsOver> over_;
};

}  // namespace trainyard::api
