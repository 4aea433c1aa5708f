// `trainyard doctor`: reports what this machine can do and what to install, and removes what a crash left.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::apps {

Result<void> doctor(const std::string& data_directory, bool clean);

}  // namespace trainyard::apps
