#include "campaign/capacity.hpp"

#include <algorithm>
#include <map>

namespace trainyard::campaign {

std::vector<MachineCapacity> capacity_left(std::vector<MachineCapacity> machines,
                                           const std::vector<Taken>& taken) {
  std::map<std::string, size_t> indexes;
  for (size_t i = 0; i < machines.size(); ++i) indexes[machines[i].machine] = i;
  for (const Taken& one : taken) {
    const auto found = indexes.find(one.machine);
    if (found == indexes.end()) continue;
    MachineCapacity& capacity = machines[found->second];
    capacity.cpus -= one.cpus;
    capacity.memory_bytes -= one.memory_bytes;
    capacity.gpus -= one.gpus;
  }
  return machines;
}

int64_t hosts_that_fit(const std::vector<MachineCapacity>& capacities,
                       const domain::InstanceType& type) {
  int64_t hosts = 0;
  const auto memory_bytes = int64_t(type.memory_gib * double(1 << 30));
  for (const MachineCapacity& capacity : capacities) {
    int64_t here = type.cpus > 0 ? int64_t(capacity.cpus / type.cpus) : 0;
    if (memory_bytes > 0) here = std::min(here, capacity.memory_bytes / memory_bytes);
    if (type.gpus > 0) here = std::min(here, capacity.gpus / int64_t(type.gpus));
    hosts += std::max<int64_t>(0, here);
  }
  return hosts;
}

}  // namespace trainyard::campaign
