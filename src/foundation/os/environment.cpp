#include "os/environment.hpp"

#include <cstdlib>

namespace trainyard::os {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace trainyard::os
