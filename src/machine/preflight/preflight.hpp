// Examines this machine: its capacity, and the features that jobs need.
//
// Threads: callable from anywhere. Errors: none; a finding says what could not be examined.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::preflight {

struct MachineCapacity {
  std::string name;          // the host name
  double cpus = 0;           // that the server may use
  int64_t memory_bytes = 0;  // less than the machine's when the server itself is limited
  int64_t gpus = 0;          // NVIDIA device files
};
MachineCapacity machine_capacity();

// Returns NVIDIA's device files: "/dev/nvidia0", .. first, then those that all GPUs share.
std::vector<std::string> gpu_devices();
// Returns the first kind only: one for each GPU.
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
  std::string remedy;  // what to install or allow; "" when nothing is needed
};
// Examines the machine. Tries what can be tried without leaving a trace. `data_directory`: its disk
// is examined.
std::vector<Examination> examine_machine(const std::string& data_directory);

}  // namespace trainyard::preflight
