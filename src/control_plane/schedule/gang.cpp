#include "schedule/gang.hpp"

#include <algorithm>

#include "base/arithmetic.hpp"
#include "base/check.hpp"
#include "schedule/pending_reasons.hpp"

namespace trainyard::schedule {

bool Gang::even() const {
  for (const Group& group : groups)
    if (!same(group.share, groups.front().share)) return false;
  return true;
}

Share Gang::share_of(uint32_t host) const {
  for (const Group& group : groups) {
    if (host < group.count) return group.share;
    host -= group.count;
  }
  CHECK(false, "the host index is below the gang's size");
}

Gang gang_of(const std::vector<HostRequest>& requests, const std::vector<Machine>& machines,
             const Policy& policy) {
  Gang gang;
  Share sum;
  for (const HostRequest& request : requests) {
    gang.groups.push_back({request.share, request.count});
    gang.hosts = saturating_add(gang.hosts, request.count);
    sum.cpus += request.share.cpus * request.count;
    sum.memory_bytes = saturating_add(
        sum.memory_bytes, saturating_mul<int64_t>(request.share.memory_bytes, request.count));
    sum.gpus = saturating_add(sum.gpus, saturating_mul<int64_t>(request.share.gpus, request.count));
  }
  gang.cpus = sum.cpus;
  if (!policy.scale_gangs || machines.size() != 1 || within(sum, machines.front().total))
    return gang;
  const Machine& machine = machines.front();
  const int64_t hosts = std::max<int64_t>(1, gang.hosts);
  const bool too_large = sum.cpus > machine.total.cpus + kRoundingCpus ||
                         sum.memory_bytes > machine.total.memory_bytes;
  gang.cpus = 0;
  for (Group& group : gang.groups) {
    if (too_large) {
      group.share.cpus = machine.total.cpus / double(hosts);
      group.share.memory_bytes = machine.total.memory_bytes / hosts;
    }
    if (sum.gpus > machine.total.gpus)
      group.share.gpus = std::min(group.share.gpus, machine.total.gpus / hosts);
    gang.cpus += group.share.cpus * group.count;
  }
  gang.note = scaled_note(machine, requests, gang.groups);
  return gang;
}

}  // namespace trainyard::schedule
