// Gives a launcher's settings seals that are not encrypted, for tests: a token after its attempt.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::launch {

template <class Settings>
void set_plain_seals(Settings& settings) {
  settings.seal = [](const std::string& token, const std::string& attempt) {
    return attempt + "/" + token;
  };
  settings.unseal = [](const std::string& sealed,
                       const std::string& attempt) -> Result<std::string> {
    if (!sealed.starts_with(attempt + "/")) return corrupt("sealed for another attempt");
    return sealed.substr(attempt.size() + 1);
  };
}

}  // namespace trainyard::launch
