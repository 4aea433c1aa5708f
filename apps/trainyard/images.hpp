// The images that are there without a line in the config:
//
//   trainyard/host      this machine's own system as a runtime
//   trainyard/trainer   the same, with our built-in trainers; their entrypoint is trainyard-trainer
//   pytorch-training, tensorflow-training, huggingface-*, sagemaker-xgboost, ..: the framework images of AWS, which no
//                       registry gives away: this machine's own system, and the job's status says so
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "domain/image.hpp"

namespace trainyard::apps {

// `configured` and the built-in images; the config takes precedence. `program_directory`: the directory of
// trainyard-trainer.
std::map<std::string, domain::Image> all_images(std::map<std::string, domain::Image> configured,
                                                const std::string& program_directory);

// The directory of a data directory for unpacked images.
std::string images_directory(const std::string& data_directory);

}  // namespace trainyard::apps
