// Scores images with a stored classifier, and prints a line of JSON for each.
//
// Threads: confined to one. Errors: those of the model and the images, naming the file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::algorithms {

// Prints the probability of each class for each image, in the format of SageMaker's endpoint:
// {"prediction":[0.1,0.9]}.
Result<void> print_predictions(const std::string& model_folder,
                               const std::vector<std::string>& image_paths,
                               const std::function<void(std::string_view line)>& print);

}  // namespace trainyard::algorithms
