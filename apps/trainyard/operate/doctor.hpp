// Implements `trainyard doctor`: reports this machine's abilities and missing packages, and removes
// remains of a crash. With a configuration file it also reports what is probably wrong there.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/layout.hpp"

namespace trainyard::apps {

struct DoctorRequest {
  std::string data_directory;
  std::string config_file;  // "": that of the server that was started last, if any
  bool clean = false;
};
// `style`: of standard output.
Result<void> doctor(const DoctorRequest& request, const cli::OutputStyle& style);

}  // namespace trainyard::apps
