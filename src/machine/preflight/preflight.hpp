// Examines this machine: its capacity, and the features that jobs need.
//
// Threads: callable from anywhere. Errors: none; a finding describes what could not be examined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::preflight {

struct MachineCapacity {
  std::string name;          // the host name
  double cpus = 0;           // cpus that the server may use
  int64_t memory_bytes = 0;  // memory of the machine, or less if the server is limited
  int64_t gpus = 0;          // number of NVIDIA GPUs
};
// Returns the capacity of this machine.
MachineCapacity machine_capacity();

// Returns NVIDIA's device files: first one for each GPU ("/dev/nvidia0", ..), then those that all
// GPUs share.
std::vector<std::string> gpu_devices();
// Returns only the device files of GPUs.
std::vector<std::string> gpu_cards();

struct Examination {
  enum class State {
    ok,
    limited,  // works with restrictions
    missing,  // jobs that need it cannot run
  };
  std::string name;  // "OCI runtime"
  State state = State::ok;
  std::string text;    // the finding
  std::string remedy;  // what to install or permit; "": not needed
};
// Examines this machine, including the disk of `data_directory`. Features are tried if that leaves
// no traces.
std::vector<Examination> examine_machine(const std::string& data_directory);

}  // namespace trainyard::preflight
