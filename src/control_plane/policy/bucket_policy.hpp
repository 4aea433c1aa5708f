// Parses the policy of a bucket: a resource policy whose statements may only name that bucket, its
// objects, and principals of this account.
//
// Threads: pure.
// Errors:  invalid, with AWS's text for MalformedPolicy.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "policy/identities.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {

// Parses and checks a policy. Users in it must exist; roles need not be defined.
Result<std::shared_ptr<const Policy>> parse_bucket_policy(std::string_view json,
                                                          std::string_view bucket,
                                                          const Identities& identities);

// Returns whether a statement allows all principals without a condition that limits them.
bool is_public(const Policy& policy);

}  // namespace trainyard::policy
