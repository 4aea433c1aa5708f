// Parses the hyperparameters of XGBoost: names, defaults, limits and the texts of errors are
// SageMaker's.
//
// Most values are passed to the library unchanged. Values that control the job itself have members.
//
// Threads: plain values, pure functions. Errors: invalid, naming the hyperparameter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::boosting {

struct BoostingSettings {
  // The library's parameters by name, with values in the library's format. Without eval_metric.
  std::map<std::string, std::string> parameters;
  std::string objective = "reg:squarederror";
  int64_t classes = 0;                // num_class; 0: not a multiclass problem
  int64_t rounds = 0;                 // num_round
  int64_t early_stopping_rounds = 0;  // 0: no early stopping
  int64_t max_bin = 256;
  bool has_csv_weights = false;  // the second column of csv is the weight of its row
  int64_t folds = 0;             // _kfold; 0: no cross validation
  int64_t fold_rounds = 1;       // _num_cv_round
  bool saves_on_termination = true;
  // Metrics in the order of the request: those that the library computes, and those of metrics/.
  std::vector<std::string> library_metrics, own_metrics;
  std::string stopping_metric;  // the metric that early stopping watches; "": the last one
};

// Returns true for metrics of which larger values are better.
bool is_maximized(std::string_view metric);

// Limit of _kfold times _num_cv_round: each cross validation trains `_kfold` models.
inline constexpr int64_t kFoldsMax = 1000;

Result<BoostingSettings> parse_boosting_settings(
    const std::map<std::string, std::string>& hyperparameters);

}  // namespace trainyard::boosting
