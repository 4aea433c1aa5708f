#include "containers/runtime.hpp"

#include <unistd.h>

#include <cstdlib>

#include "base/text.hpp"

namespace trainyard::containers {

Result<std::string> find_runtime() {
  const char* path = ::getenv("PATH");
  for (const auto folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':')) {
    const std::string candidate = std::string(folder) + "/crun";
    if (!folder.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return not_found("no OCI runtime: 'crun' is not on PATH; install the package crun");
}

}  // namespace trainyard::containers
