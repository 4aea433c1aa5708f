// `trainyard doctor`: reports this machine's abilities and missing packages, and removes remains of
// a crash.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::apps {

Result<void> doctor(const std::string& data_directory, bool clean);

}  // namespace trainyard::apps
