#include "sagemaker/algorithm_metrics.hpp"

namespace trainyard::api::sagemaker {
namespace {

// AWS's list of the metrics of each set. In AWS's logs a tab is written as "#011".
constexpr const char* kXgboostMetrics[] = {"accuracy",
                                           "auc",
                                           "aucpr",
                                           "balanced_accuracy",
                                           "f1",
                                           "f1_binary",
                                           "f1_macro",
                                           "map",
                                           "ndcg",
                                           "precision",
                                           "precision_macro",
                                           "precision_micro",
                                           "r2",
                                           "recall",
                                           "recall_macro",
                                           "recall_micro",
                                           "aft-nloglik",
                                           "cox-nloglik",
                                           "error",
                                           "gamma-deviance",
                                           "gamma-nloglik",
                                           "interval-regression-accuracy",
                                           "logloss",
                                           "mae",
                                           "mape",
                                           "merror",
                                           "mlogloss",
                                           "mphe",
                                           "mse",
                                           "poisson-nloglik",
                                           "rmse",
                                           "rmsle",
                                           "tweedie-nloglik"};

std::vector<AlgorithmMetric> xgboost_metrics() {
  std::vector<AlgorithmMetric> all;
  for (const char* set : {"train", "validation"})
    for (const char* metric : kXgboostMetrics)
      all.push_back({std::string(set) + ":" + metric,
                     R"(.*\[[0-9]+\].*#011)" + std::string(set) + "-" + metric +
                         R"(:([-+]?(?:[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|nan|inf)))"});
  return all;
}

}  // namespace

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
  if (repository == "sagemaker-xgboost" || repository == "xgboost") return xgboost_metrics();
  return {};
}

}  // namespace trainyard::api::sagemaker
