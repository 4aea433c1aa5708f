// `trainyard warm IMAGE`: fetches and unpacks an image ahead of the jobs that will ask for it, as their hosts would.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::apps {

struct WarmOptions {
  std::string data_directory;
  std::string config_file;  // "" = none
  std::string image;        // as a TrainingImage names it
};

// Says on standard output how far it is. Errors: those of the image.
Result<void> warm(const WarmOptions& options);

}  // namespace trainyard::apps
