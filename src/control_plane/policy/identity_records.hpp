// Converts users, groups, roles, instance profiles, managed policies and access keys to JSON
// documents, one for each record, and back.
//
// Identities of the configuration file and AWS managed policies are not written: they come from the
// file and from this program. A record that cannot be read is set aside and reported; the rest is
// served.
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

// nothing: the record is removed.
struct RecordChange {
  RecordName name;
  std::optional<Json> document;
};

inline constexpr std::string_view kUserRecord = "user", kGroupRecord = "group",
                                  kRoleRecord = "role", kPolicyRecord = "policy",
                                  kKeyRecord = "access_key", kBucketPolicyRecord = "bucket_policy",
                                  kInstanceProfileRecord = "instance_profile";

// The records that turn `before` into `after`.
std::vector<RecordChange> difference(const Identities& before, const Identities& after);

// Opens the sealed secret of an access key.
using Unseal =
    std::function<Result<std::string>(const std::string& sealed, const std::string& key_id)>;

// Adds the record to `identities` unless it is of another kind, or the configuration file defines
// an entity of that name (names compare ignoring case). Errors: invalid, corrupt; then nothing is
// added.
Result<void> add_record(Identities& identities, const RecordName& name, const Json& document,
                        const Unseal& unseal);

}  // namespace trainyard::policy
