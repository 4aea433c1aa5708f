// Computes how many hosts of an instance type fit on a region's machines.
//
// Threads: pure. Errors: none. Units: memory in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "domain/instance_type.hpp"

namespace trainyard::campaign {

struct Room {
  std::string machine;
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
};

// The share of a machine that jobs hold.
using Taken = Room;

// The machines minus the shares that jobs hold; shares on machines that are gone are ignored.
std::vector<Room> rooms_left(std::vector<Room> machines, const std::vector<Taken>& taken);
// Each host is on one machine.
int64_t hosts_that_fit(const std::vector<Room>& rooms, const domain::InstanceType& type);

}  // namespace trainyard::campaign
