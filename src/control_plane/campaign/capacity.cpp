#include "campaign/capacity.hpp"

#include <algorithm>
#include <map>

namespace trainyard::campaign {

std::vector<Room> rooms_left(std::vector<Room> machines, const std::vector<Taken>& taken) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < machines.size(); ++i) places[machines[i].machine] = i;
  for (const Taken& one : taken) {
    const auto found = places.find(one.machine);
    if (found == places.end()) continue;
    Room& room = machines[found->second];
    room.cpus -= one.cpus;
    room.memory_bytes -= one.memory_bytes;
    room.gpus -= one.gpus;
  }
  return machines;
}

int64_t hosts_that_fit(const std::vector<Room>& rooms, const domain::InstanceType& type) {
  int64_t hosts = 0;
  const auto memory_bytes = int64_t(type.memory_gib * double(1 << 30));
  for (const Room& room : rooms) {
    int64_t here = type.cpus > 0 ? int64_t(room.cpus / type.cpus) : 0;
    if (memory_bytes > 0) here = std::min(here, room.memory_bytes / memory_bytes);
    if (type.gpus > 0) here = std::min(here, room.gpus / int64_t(type.gpus));
    hosts += std::max<int64_t>(0, here);
  }
  return hosts;
}

}  // namespace trainyard::campaign
