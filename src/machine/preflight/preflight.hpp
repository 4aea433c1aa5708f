// Examines this machine: its capacity, and what it permits.
//
// Threads: callable from anywhere. Errors: none; what cannot be found out is said so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::preflight {

struct MachineCapacity {
  std::string name;          // its host name
  double cpus = 0;           // that we may use
  int64_t memory_bytes = 0;  // less than the machine's when we ourselves are limited
  int64_t gpus = 0;          // NVIDIA device files
};
MachineCapacity machine_capacity();

// NVIDIA's device files that exist: "/dev/nvidia0", .. first, then those that all GPUs share.
std::vector<std::string> gpu_devices();
// The first of them only: one a GPU.
std::vector<std::string> gpu_cards();

struct Examination {
  enum class State {
    ok,
    limited,  // works, but not in every way
    missing,  // jobs that need it cannot run
  };
  std::string name;  // "OCI runtime"
  State state = State::ok;
  std::string sentence;  // what was found
  std::string remedy;    // what to install or allow; "" when nothing is needed
};
// Tries, rather than guesses, what can be tried without leaving a trace. `data_directory`: whose disk is
// looked at.
std::vector<Examination> examine_machine(const std::string& data_directory);

}  // namespace trainyard::preflight
