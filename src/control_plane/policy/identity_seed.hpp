// Makes the users, groups, roles, policies and access keys that the configuration file defines.
//
// Threads: plain values and a pure function.
// Errors:  invalid, with the entry ("user ann: ..") and its error.
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

// Returns the trust policy of undefined roles. It trusts services that run jobs, and principals of
// the account whose identity policies allow them to assume the role.
std::string built_in_trust(const std::string& account);

// Returns an id ("AIDA..") that depends only on the name, for entities without a record.
std::string seed_id(std::string_view prefix, std::string_view name);

// Returns a snapshot of the identities in the configuration file and the AWS managed policies.
Result<Identities> identities_of(const std::string& account, const IdentitySeed& seed);

// Returns a warning for each key and user of the configuration file that has no permissions, with
// the line that would grant some.
std::vector<std::string> seed_warnings(const Identities& identities);

}  // namespace trainyard::policy
