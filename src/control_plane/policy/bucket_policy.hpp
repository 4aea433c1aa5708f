// Reads the policy of a bucket: a resource policy whose statements are about that bucket, its
// objects, and principals of this account.
//
// Threads: pure.
// Errors:  invalid, with the text that AWS gives with MalformedPolicy.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "policy/identities.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {

// Users must exist; roles need not be defined.
Result<std::shared_ptr<const Policy>> parse_bucket_policy(std::string_view json,
                                                          std::string_view bucket,
                                                          const Identities& identities);

// True if a statement allows every principal without a condition.
bool is_public(const Policy& policy);

}  // namespace trainyard::policy
