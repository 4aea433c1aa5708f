// Limits how many instances of a type training jobs may use at once.
//
// Threads: plain values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::domain {

// How many instances of a type training jobs may use at once. It counts for each user and each region by itself.
struct InstanceQuota {
  std::string who = {};     // a user's or a role's name; "": everybody who has no quota of his own
  std::string region = {};  // "": every region that has no quota of its own
  std::string instance_type;
  int64_t count = 0;

  std::string name() const;  // "ml.m5.xlarge for training job usage", as AWS calls it
};
// What counts for them; nullptr: as many as there are. One that names who goes before one that names the region.
const InstanceQuota* quota_of(const std::vector<InstanceQuota>& quotas, std::string_view who,
                              std::string_view region, std::string_view instance_type);

}  // namespace trainyard::domain
