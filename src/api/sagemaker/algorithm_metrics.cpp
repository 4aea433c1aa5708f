#include "sagemaker/algorithm_metrics.hpp"

namespace trainyard::api::sagemaker {

std::vector<AlgorithmMetric> algorithm_metrics(std::string_view name, const domain::Image& image) {
  if (!image.built_in) return {};
  if (domain::split_image_name(name).repository == "image-classification")
    return {{"train:accuracy", R"(Epoch\[\d+\] Train-accuracy=([0-9.]+))"},
            {"validation:accuracy", R"(Epoch\[\d+\] Validation-accuracy=([0-9.]+))"}};
  return {};
}

}  // namespace trainyard::api::sagemaker
