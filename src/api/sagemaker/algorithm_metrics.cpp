#include "sagemaker/algorithm_metrics.hpp"

namespace trainyard::api::sagemaker {

std::vector<AlgorithmMetric> algorithm_metrics(std::string_view name, const domain::Image& image) {
  if (!image.built_in) return {};
  const auto repository = domain::split_image_name(name).repository;
  if (repository == "randomcutforest")
    return {{"test:accuracy", R"(#quality_metric: host=\S+, test accuracy <score>=(\S+))"},
            {"test:precision", R"(#quality_metric: host=\S+, test precision <score>=(\S+))"},
            {"test:recall", R"(#quality_metric: host=\S+, test recall <score>=(\S+))"},
            {"test:f1", R"(#quality_metric: host=\S+, test f1 <score>=(\S+))"}};
  if (repository == "image-classification")
    return {{"train:accuracy", R"(Epoch\[\d+\] Train-accuracy=([0-9.]+))"},
            {"validation:accuracy", R"(Epoch\[\d+\] Validation-accuracy=([0-9.]+))"}};
  return {};
}

}  // namespace trainyard::api::sagemaker
