// Lists the built-in images, which need no entry in the config:
//
//   trainyard/host      this machine's own system as a runtime
//   trainyard/trainer   the same, with the built-in trainers; the entrypoint is trainyard-trainer
//   randomcutforest     SageMaker's algorithm of this name: trainyard-trainer, too
//   image-classification   SageMaker's algorithm of this name: this machine's own system with
//                       trainyard-algorithms, which ./yard algorithms builds
//   sagemaker-xgboost, xgboost   SageMaker's algorithm: this machine's own system with
//                       trainyard-xgboost, which ./yard xgboost builds, as the command `train`; a
//                       script that the job names runs instead
//   pytorch-training, tensorflow-training, huggingface-*, sagemaker-scikit-learn, ..
//                       AWS's framework images, which no registry offers: replaced by this
//                       machine's own system, with a note in the job's status
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "domain/image.hpp"

namespace trainyard::apps {

// Adds the built-in images to `configured`, which takes precedence. `program_directory` has
// trainyard-trainer, trainyard-algorithms and trainyard-xgboost.
std::map<std::string, domain::Image> all_images(std::map<std::string, domain::Image> configured,
                                                const std::string& program_directory);

// Returns the directory for unpacked images in a data directory.
std::string images_directory(const std::string& data_directory);

}  // namespace trainyard::apps
