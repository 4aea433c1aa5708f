#include "domain/instance_quota.hpp"

namespace trainyard::domain {

std::string InstanceQuota::name() const { return instance_type + " for training job usage"; }

const InstanceQuota* quota_of(const std::vector<InstanceQuota>& quotas, std::string_view who,
                              std::string_view region, std::string_view instance_type) {
  const InstanceQuota* best = nullptr;
  const auto rank = [](const InstanceQuota& each) {
    return 2 * !each.who.empty() + !each.region.empty();
  };
  for (const InstanceQuota& each : quotas) {
    if (each.instance_type != instance_type || (!each.who.empty() && each.who != who) ||
        (!each.region.empty() && each.region != region))
      continue;
    if (!best || rank(each) > rank(*best)) best = &each;
  }
  return best;
}

}  // namespace trainyard::domain
