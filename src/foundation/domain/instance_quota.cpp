#include "domain/instance_quota.hpp"

namespace trainyard::domain {

std::string InstanceQuota::name() const { return instance_type + " for training job usage"; }

const InstanceQuota* quota_of(const std::vector<InstanceQuota>& quotas, std::string_view user,
                              std::string_view region, std::string_view instance_type) {
  const InstanceQuota* best = nullptr;
  const auto rank = [](const InstanceQuota& each) {
    return 2 * !each.user.empty() + !each.region.empty();
  };
  for (const InstanceQuota& each : quotas) {
    if (each.instance_type != instance_type || (!each.user.empty() && each.user != user) ||
        (!each.region.empty() && each.region != region))
      continue;
    if (!best || rank(each) > rank(*best)) best = &each;
  }
  return best;
}

}  // namespace trainyard::domain
