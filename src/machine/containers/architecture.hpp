// Returns the architecture of this machine, in the kernel's and in images' terms.
//
// Threads: callable from anywhere.
#pragma once

#include <sys/utsname.h>

#include <string>

namespace trainyard::containers {

// Returns "x86_64" or "aarch64".
inline std::string machine_architecture() {
  utsname name;
  return ::uname(&name) == 0 ? name.machine : "";
}

// Returns "amd64" or "arm64".
inline std::string image_architecture() {
  const std::string machine = machine_architecture();
  return machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine;
}

}  // namespace trainyard::containers
