#include "launch/slurm/allocations.hpp"

#include <algorithm>

#include "base/fnv.hpp"
#include "base/text.hpp"

namespace trainyard::launch {

std::string allocation_kind(const SlurmJobRequest& request, std::string_view submitter) {
  const SlurmPlacement& placement = request.placement;
  // Only this server compares kinds, so the hash need not withstand forgery.
  uint64_t hash = kFnvBasis;
  const auto add = [&](std::string_view text) {
    hash = fnv1a_step(fnv1a(text, hash), 0xff);  // no text has this byte
  };
  for (const auto* text :
       {&placement.partition, &placement.account, &placement.qos, &placement.constraint,
        &placement.reservation, &placement.licenses, &placement.gpu_type})
    add(*text);
  for (const int64_t number : {int64_t(placement.exclusive), request.per_node.cpus,
                               request.per_node.memory_mib, request.per_node.gpus})
    add(std::to_string(number));
  add(submitter);
  if (!request.user.name.empty()) add(request.user.name);
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += char(hash >> shift);
  return to_hex(bytes);
}

std::optional<uint64_t> choose_allocation(const std::vector<IdleAllocation>& idle,
                                          const AllocationNeed& need) {
  const IdleAllocation* best = nullptr;
  for (const IdleAllocation& each : idle) {
    if (each.node != need.node || each.kind != need.kind || each.time_left < need.run_time_max)
      continue;
    if (!best || std::pair(each.time_left, each.job) < std::pair(best->time_left, best->job))
      best = &each;
  }
  if (!best) return {};
  return best->job;
}

std::vector<uint64_t> allocations_to_release(const std::vector<IdleAllocation>& idle,
                                             const std::vector<std::string>& pending_on,
                                             Duration spared) {
  std::vector<uint64_t> jobs;
  for (const IdleAllocation& each : idle) {
    const bool needed = std::ranges::any_of(
        pending_on, [&](const std::string& node) { return node == "*" || node == each.node; });
    if (needed && each.idle >= spared) jobs.push_back(each.job);
  }
  return jobs;
}

}  // namespace trainyard::launch
