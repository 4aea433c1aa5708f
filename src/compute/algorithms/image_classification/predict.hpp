// Scores images with a stored classifier, a line of JSON for each.
//
// Threads: confined to one. Errors: of the model and the images, naming the file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::algorithms {

// Prints {"prediction":[0.1,0.9]}, as SageMaker's endpoint answers, for each image: the probability
// of each class.
Result<void> print_predictions(const std::string& model_folder,
                               const std::vector<std::string>& image_paths,
                               const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::algorithms
