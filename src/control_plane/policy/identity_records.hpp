// Converts users, groups, roles, instance profiles, managed policies and access keys to JSON
// documents, one for each record, and back.
//
// Identities of the configuration file and AWS managed policies are not stored: they come from the
// file and from this program. A record that cannot be read is reported and ignored; the other
// records are used.
//
// Threads: pure.
// Format:  docs/formats/ledger.md, table `records`. Members that are missing take their defaults.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "policy/identities.hpp"

namespace trainyard::policy {

using RecordName = std::pair<std::string, std::string>;  // kind, name

struct RecordChange {
  RecordName name;
  std::optional<Json> document;  // nullopt: remove the record
};

inline constexpr std::string_view kUserRecord = "user", kGroupRecord = "group",
                                  kRoleRecord = "role", kPolicyRecord = "policy",
                                  kKeyRecord = "access_key", kBucketPolicyRecord = "bucket_policy",
                                  kInstanceProfileRecord = "instance_profile";

// Returns the changes of records that convert `before` into `after`.
std::vector<RecordChange> difference(const Identities& before, const Identities& after);

// Decrypts the secret of an access key.
using Unseal =
    std::function<Result<std::string>(const std::string& sealed, const std::string& key_id)>;

// Adds the record to `identities`. Records of other kinds are ignored, and so are records for which
// the configuration file defines an entity of the same name (ignoring case). Errors: invalid,
// corrupt; nothing is added then.
Result<void> add_record(Identities& identities, const RecordName& name, const Json& document,
                        const Unseal& unseal);

}  // namespace trainyard::policy
