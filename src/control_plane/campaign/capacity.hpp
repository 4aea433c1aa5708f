// Computes how many hosts of an instance type fit on a region's machines.
//
// Threads: pure. Errors: none. Units: memory in bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "domain/instance_type.hpp"

namespace trainyard::campaign {

struct MachineCapacity {
  std::string machine;
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
};

// The share of a machine that jobs hold.
using Taken = MachineCapacity;

// Returns the machines minus the shares that jobs hold. Ignores shares on machines that no longer
// exist.
std::vector<MachineCapacity> capacity_left(std::vector<MachineCapacity> machines,
                                           const std::vector<Taken>& taken);
// Returns how many hosts of the type fit, each on one machine.
int64_t hosts_that_fit(const std::vector<MachineCapacity>& capacities,
                       const domain::InstanceType& type);

}  // namespace trainyard::campaign
