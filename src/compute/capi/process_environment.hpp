// Reads the environment of this process, as a collectives::Variables.
//
// Threads: callable from anywhere, while no thread changes the environment. Errors: none.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::capi {

inline std::optional<std::string> variable_of_process(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace trainyard::capi
