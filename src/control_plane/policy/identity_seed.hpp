// Makes the users, groups, roles, policies and access keys that the configuration file defines.
//
// Threads: plain values and a pure function.
// Errors:  invalid, naming the entry ("user ann: ..") and what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "policy/identities.hpp"

namespace trainyard::policy {

// Limits of a role's longest session. The lower one is below IAM's hour, so that a session may be
// short here.
inline constexpr int64_t kSessionSecondsMin = 900;
inline constexpr int64_t kSessionSecondsMax = 43'200;

struct SeedEntity {
  std::string name;
  std::vector<std::string> groups;                           // of users
  std::vector<std::string> policies;                         // names or ARNs of managed policies
  std::vector<std::pair<std::string, std::string>> inline_;  // policy name, document
  std::string boundary;                                      // name or ARN; "" = none
  std::string trust;                   // of roles: a document; "" = this account and its services
  std::string description;             // of roles
  int64_t max_session_seconds = 3600;  // of roles
};

struct SeedPolicy {
  std::string name;
  std::string document;
};

struct SeedKey {
  std::string id;
  std::string secret;
  std::string user;
};

// The first key's user is the owner.
struct IdentitySeed {
  std::vector<SeedKey> keys;
  std::vector<SeedEntity> users, groups, roles;
  std::vector<SeedPolicy> policies;
};

// The trust policy of an undefined role: it trusts services that run jobs, and principals of the
// account whose own policy allows them to assume it.
std::string built_in_trust(const std::string& account);

// An id that depends on the name alone ("AIDA.."), for entities that no record keeps.
std::string seed_id(std::string_view prefix, std::string_view name);

// The snapshot of the configuration file alone, with AWS managed policies.
Result<Identities> identities_of(const std::string& account, const IdentitySeed& seed);

// Keys and users of the configuration file that have no permissions, each with the line that would
// change it.
// Empty: none.
std::vector<std::string> seed_warnings(const Identities& identities);

}  // namespace trainyard::policy
