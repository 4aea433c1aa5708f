// Parses the hyperparameters of image classification: names, defaults and limits are SageMaker's.
//
// Unknown names and missing or invalid values are rejected with the texts of JSON schema
// validation, which SageMaker's algorithms use. Values that SageMaker supports and this
// implementation does not are rejected with the reason.
//
// Threads: plain values, pure functions. Errors: invalid, naming the hyperparameter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "algorithms/image_classification/image_shape.hpp"
#include "base/result.hpp"
#include "parallel/optimizer.hpp"

namespace trainyard::algorithms {

// Each includes the one before.
enum class Augmentation : uint8_t { none, crop, crop_color, crop_color_transform };

struct ClassifierSettings {
  int64_t num_layers = 152;
  ImageShape image_shape;
  int64_t num_classes = 0;
  int64_t num_training_samples = 0;
  int64_t mini_batch_size = 32;  // of one host
  int64_t epochs = 30;
  double learning_rate = 0.1;
  double lr_scheduler_factor = 0.1;
  std::vector<int64_t> lr_scheduler_step = {};  // epochs, ascending
  parallel::OptimizerSettings optimizer = {.weight_decay = 1e-4};
  Augmentation augmentation = Augmentation::none;
  int64_t resize = 0;                // pixels of the shorter side after resizing; 0: not resized
  int64_t checkpoint_frequency = 0;  // epochs; 0: only the best model is stored
  bool early_stopping = false;
  int64_t early_stopping_min_epochs = 10;
  int64_t early_stopping_epochs_max = 5;  // early_stopping_patience: epochs without growth
  double early_stopping_tolerance = 0;
  int64_t top_k = 0;  // 0: not reported
};

Result<ClassifierSettings> parse_classifier_settings(
    const std::map<std::string, std::string>& hyperparameters);

}  // namespace trainyard::algorithms
