// `trainyard doctor`: what this machine can do, what to install, and the sweep of what a crash left.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::apps {

Result<void> doctor(const std::string& data_directory, bool clean);

}  // namespace trainyard::apps
