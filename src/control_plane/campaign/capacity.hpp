// How many hosts of an instance type fit on machines: what a region tells of itself.
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

// What jobs have taken: a machine and how much of it.
using Taken = Room;

// Machines less what is taken of them; what is taken of machines that are gone is left out.
std::vector<Room> rooms_left(std::vector<Room> machines, const std::vector<Taken>& taken);
// Each host lies on one machine.
int64_t hosts_that_fit(const std::vector<Room>& rooms, const domain::InstanceType& type);

}  // namespace trainyard::campaign
