#include "auth/principals.hpp"

#include <algorithm>
#include <set>

#include "auth/roles.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "policy/pattern.hpp"
#include "reconcile/state.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kEndedAttemptsMax = 16'384;  // some hundred KiB

Principal owner_principal(const Settings& settings, std::string_view user) {
  Principal out;
  out.account = settings.account;
  out.name = user;
  out.arn = assumed_role_arn(settings.account, kOwnerRole, user);
  static const std::string kOwnerRoleId = role_id(kOwnerRole);
  out.user_id = kOwnerRoleId + ":" + std::string(user);
  out.kind = PrincipalKind::owner;
  return out;
}

Principal user_principal(const policy::Identities& identities, const std::string& name) {
  const policy::User* user = identities.find_user(name);
  Principal out;
  out.account = identities.account();
  out.name = name;
  out.arn =
      user ? identities.arn_of(*user) : "arn:aws:iam::" + identities.account() + ":user/" + name;
  out.user_id = user ? user->id : name;
  out.kind = PrincipalKind::user;
  return out;
}

// Returns whether the session's attempt is the current one of the job and has not ended.
bool runs(const domain::Job& job, const RoleSession& session) {
  const domain::Attempt* attempt = job.attempt();
  return job.number == session.job_number && !job.finished() && attempt &&
         attempt->number == session.attempt && attempt->state != domain::AttemptState::ended;
}

// Returns whether the session's attempt has ended for good. Control's snapshot may be older than
// the session: an attempt that is missing there has not ended.
bool is_over(const domain::Job& job, const RoleSession& session) {
  if (job.number != session.job_number) return job.number > session.job_number;
  if (job.finished()) return true;
  const domain::Attempt* attempt = job.attempt();
  return attempt &&
         (attempt->number > session.attempt ||
          (attempt->number == session.attempt && attempt->state == domain::AttemptState::ended));
}

Error principal_denied(const std::string& name, const std::string& why) {
  return denied("User: " + shorten(name, 300) +
                " is not authorized to perform this request because " + why);
}

// Returns whether one of the patterns matches the name: in "train-*", '*' matches any text.
bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    std::string compiled = pattern;
    std::ranges::replace(compiled, '*', policy::kAnyMany);
    return policy::matches(compiled, name);
  });
}

void copy_origin(const Delegation& from, Principal& to) {
  to.source_ip = from.source_ip;
  to.secure = from.secure;
  to.invoked_by = from.invoked_by;
  to.peer_key_id = from.peer_key_id;
}

}  // namespace

// Remembers attempts that have ended for good, so that further requests with their keys cause no
// look-up in the ledger, which would block the I/O thread.
struct Principals::EndedAttempts {
  SharedMutex mutex;
  std::set<domain::AttemptId> attempts GUARDED_BY(mutex);

  bool has(const domain::AttemptId& attempt) {
    const ReaderLock lock(mutex);
    return attempts.contains(attempt);
  }
  void add(const domain::AttemptId& attempt) {
    const WriterLock lock(mutex);
    if (attempts.size() >= kEndedAttemptsMax) attempts.clear();
    attempts.insert(attempt);
  }
};

Principals::Principals(const Settings& settings, control::Control& control)
    : settings_(settings), control_(control), ended_attempts_(std::make_unique<EndedAttempts>()) {}
Principals::~Principals() = default;

std::optional<std::string> Principals::find_by_key(std::string_view id,
                                                   Principal& principal) const {
  if (settings_.identities) {
    const auto identities = settings_.identities();
    const policy::AccessKey* key = identities->find_key(id);
    if (!key || !key->active) return {};
    principal =
        key->owner ? owner_principal(settings_, key->user) : user_principal(*identities, key->user);
    return key->secret;
  }
  for (const auto& key : settings_.keys) {
    if (key.id != id) continue;
    principal = owner_principal(settings_, key.user);
    return key.secret;
  }
  return {};
}

std::optional<Principal> Principals::find_by_session(RoleSession session) const {
  Principal out;
  out.account = settings_.account;
  out.role_arn = session.role_arn;
  out.arn = assumed_role_arn(settings_.account, session.role_arn, session.session_name);
  const std::string_view role = role_name(session.role_arn);
  std::string id = role_id(role);
  if (settings_.identities)
    if (const auto identities = settings_.identities();
        const auto* defined = identities->find_role(role))
      id = defined->id;
  out.user_id = id + ":" + session.session_name;
  if (!session.job_name.empty()) {
    const domain::AttemptId attempt{session.job_number, session.attempt};
    if (ended_attempts_->has(attempt)) return {};
    auto job = control_.find({session.job_region, session.job_name});
    if (!job && job.error().kind != Kind::not_found) return {};  // the job's state is unknown
    if (!job || is_over(**job, session)) ended_attempts_->add(attempt);
    if (!job || !runs(**job, session)) return {};
    out.job = *std::move(job);
  }
  out.name = session.person.empty() ? std::string(role) : session.person;
  out.session = std::make_shared<const RoleSession>(std::move(session));
  return out;
}

bool Principals::is_owner(const std::string& user) const {
  if (!settings_.identities)
    return std::ranges::any_of(settings_.keys,
                               [&](const policy::ConfiguredKey& key) { return key.user == user; });
  const auto identities = settings_.identities();
  return std::ranges::any_of(identities->keys(), [&](const auto& each) {
    return each.second->owner && each.second->active && each.second->user == user;
  });
}

const policy::Peer* Principals::find_peer(const std::vector<policy::Peer>& peers,
                                          std::string_view key_id) const {
  const auto found = std::ranges::find(peers, key_id, &policy::Peer::access_key_id);
  return found == peers.end() ? nullptr : &*found;
}

Result<Principal> Principals::find_stored(const Delegation& delegation, Instant now) const {
  if (!delegation.peer_key_id.empty()) {
    const std::vector<policy::Peer> peers = settings_.peers();
    if (!find_peer(peers, delegation.peer_key_id))
      return principal_denied(delegation.name, "its server was removed from the peers of this one");
  }
  Principal out;
  if (delegation.kind == PrincipalKind::owner) {
    if (!is_owner(delegation.name))
      return principal_denied(delegation.name, "its owner's key was removed");
    out = owner_principal(settings_, delegation.name);
  } else if (delegation.kind == PrincipalKind::user) {
    const auto identities = settings_.identities ? settings_.identities() : nullptr;
    const policy::User* user = identities ? identities->find_user(delegation.name) : nullptr;
    if (!user || user->id != delegation.id)
      return principal_denied(delegation.name, "the user no longer exists");
    out = user_principal(*identities, delegation.name);
  } else {
    const RoleSession& session = delegation.session;
    const std::string arn =
        assumed_role_arn(settings_.account, session.role_arn, session.session_name);
    // A job's own keys are renewed until its attempt ends. Every other session expires at a fixed
    // time.
    const bool of_job = !session.job_name.empty() && !session.assumed;
    if (!of_job && now >= session.expires) return principal_denied(arn, "the session has expired");
    auto found = find_by_session(session);
    if (!found)
      return principal_denied(arn, "the job's attempt, with which the session expires, has ended");
    if (found->user_id != delegation.id) return principal_denied(arn, "the role no longer exists");
    out = *std::move(found);
  }
  copy_origin(delegation, out);
  return out;
}

Result<Principal> Principals::find_for_peer(const Delegation& delegation, const Principal& peer,
                                            Instant now) const {
  const std::vector<policy::Peer> peers = settings_.peers();
  const policy::Peer* entry = find_peer(peers, peer.access_key_id);
  const auto identities = settings_.identities ? settings_.identities() : nullptr;
  if (!entry || !identities)
    return principal_denied(peer.arn,
                            "only configured peers make requests on behalf of other principals");
  if (!delegation.peer_key_id.empty())
    return principal_denied(peer.arn,
                            "requests on behalf of other principals pass through one server only");
  Principal out;
  if (delegation.kind == PrincipalKind::user) {
    if (!matches_any(entry->users, delegation.name) || !identities->find_user(delegation.name))
      return principal_denied(
          peer.arn, "it does not act on behalf of the user " + shorten(delegation.name, 100));
    out = user_principal(*identities, delegation.name);
  } else if (delegation.kind == PrincipalKind::session) {
    RoleSession session = delegation.session;
    const std::string role(role_name(session.role_arn));
    const bool known = identities->find_role(role) || settings_.open_roles;
    if (is_reserved_role(role) || !known || !matches_any(entry->roles, role))
      return principal_denied(peer.arn,
                              "it does not act on behalf of the role " + shorten(role, 100));
    if (now >= session.expires) return principal_denied(peer.arn, "the session has expired");
    // The other server's jobs do not exist here.
    session.job_region.clear();
    session.job_name.clear();
    session.assumed = true;
    session.role_arn = role_arn(settings_.account, role);
    out = *find_by_session(std::move(session));
  } else {
    return principal_denied(peer.arn, "it does not act on behalf of owners");
  }
  copy_origin(delegation, out);
  out.secure = delegation.secure;
  out.invoked_by = peer.arn;
  out.peer_key_id = peer.access_key_id;
  return out;
}

}  // namespace trainyard::api
