// Parses the hyperparameters of XGBoost: names, defaults, limits and the texts of errors are
// SageMaker's.
//
// Most values are passed to the library as they are; those that decide how a job runs have members.
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
  // The library's parameters by name, in its own texts. Without eval_metric.
  std::map<std::string, std::string> parameters;
  std::string objective = "reg:squarederror";
  int64_t classes = 0;                // num_class; 0: not a problem with several classes
  int64_t rounds = 0;                 // num_round
  int64_t early_stopping_rounds = 0;  // 0: all rounds
  int64_t max_bin = 256;
  bool has_csv_weights = false;  // the second column of csv is the weight of its row
  int64_t folds = 0;             // _kfold; 0: no cross validation
  int64_t fold_rounds = 1;       // _num_cv_round
  bool saves_on_termination = true;
  // In the order of the request. Those of the library are computed by it, the others here.
  std::vector<std::string> library_metrics, own_metrics;
  std::string stopping_metric;  // which early stopping watches; "": the last one
};

// True for metrics that are better when larger.
bool is_maximized(std::string_view metric);

// The highest number of cross validations: each trains `_kfold` models.
inline constexpr int64_t kFoldsMax = 1000;

Result<BoostingSettings> parse_boosting_settings(
    const std::map<std::string, std::string>& hyperparameters);

}  // namespace trainyard::boosting
