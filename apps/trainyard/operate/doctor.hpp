// Implements `trainyard doctor`: reports this machine's features and missing packages, and removes
// the remains of a crash. With a configuration file it also reports probable mistakes in it.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cli/layout.hpp"

namespace trainyard::apps {

struct DoctorRequest {
  std::string data_directory;
  std::string config_file;  // "" = the file of the last server, if any
  bool clean = false;
};
// `style`: the properties of standard output.
Result<void> doctor(const DoctorRequest& request, const cli::OutputStyle& style);

}  // namespace trainyard::apps
