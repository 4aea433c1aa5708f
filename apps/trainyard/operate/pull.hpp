// Implements `trainyard pull IMAGE`: pulls and unpacks an image before jobs need it.
#pragma once

#include <string>

#include "base/result.hpp"

namespace trainyard::apps {

struct PullOptions {
  std::string data_directory;
  std::string config_file;  // "": none
  std::string image;        // a name as in TrainingImage
};

// Prints its progress to standard output. Errors: those of the image.
Result<void> pull(const PullOptions& options);

}  // namespace trainyard::apps
