// Names this machine's architecture, as the kernel and as images do.
//
// Threads: callable from anywhere.
#pragma once

#include <sys/utsname.h>

#include <string>

namespace trainyard::containers {

// "x86_64", "aarch64".
inline std::string machine_architecture() {
  utsname name;
  return ::uname(&name) == 0 ? name.machine : "";
}

// "amd64", "arm64".
inline std::string image_architecture() {
  const std::string machine = machine_architecture();
  return machine == "x86_64" ? "amd64" : machine == "aarch64" ? "arm64" : machine;
}

}  // namespace trainyard::containers
