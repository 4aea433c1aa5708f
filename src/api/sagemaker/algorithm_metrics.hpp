// Lists the metrics that SageMaker defines for training jobs of its own algorithms.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "domain/image.hpp"

namespace trainyard::api::sagemaker {

struct AlgorithmMetric {
  std::string name;   // "validation:accuracy"
  std::string regex;  // RE2 syntax, with a group for the value
};

// Returns the metrics of the algorithm. `name`: the image's name in the request; `image`: the image
// that it resolves to. Returns none for an image that is not built in, whatever its name, since it
// may print other lines.
std::vector<AlgorithmMetric> algorithm_metrics(std::string_view name, const domain::Image& image);

}  // namespace trainyard::api::sagemaker
