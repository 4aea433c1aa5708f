// Defines the quotas of instances that training jobs may use at once.
//
// Threads: plain values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::domain {

// Limits the number of instances of a type that training jobs may use at once, separately for each
// user and each region.
struct InstanceQuota {
  std::string user = {};    // name of a user or a role; "": all without a quota of their own
  std::string region = {};  // "": all regions without a quota of their own
  std::string instance_type;
  int64_t count = 0;

  std::string name() const;  // "ml.m5.xlarge for training job usage", as on AWS
};
// Returns the quota that applies; nullptr: no limit. A quota for the principal takes precedence
// over a quota for the region.
const InstanceQuota* quota_of(const std::vector<InstanceQuota>& quotas, std::string_view user,
                              std::string_view region, std::string_view instance_type);

}  // namespace trainyard::domain
