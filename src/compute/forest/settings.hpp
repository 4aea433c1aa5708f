// Parses the hyperparameters of a random cut forest: names, defaults and limits are SageMaker's.
//
// Unknown names and missing or invalid values are rejected with the texts of JSON schema
// validation, which SageMaker's algorithms use.
//
// Threads: plain values, pure functions. Errors: invalid, naming the hyperparameter.
#pragma once

#include <map>
#include <string>

#include "base/result.hpp"
#include "forest/trees/forest.hpp"

namespace trainyard::forest {

inline constexpr int64_t kTreesMin = 50;

struct ForestSettings {
  ForestOptions forest;
  // The metrics of a test channel, from eval_metrics.
  bool has_accuracy = true;
  bool has_fscore = true;  // precision_recall_fscore
};

Result<ForestSettings> parse_forest_settings(
    const std::map<std::string, std::string>& hyperparameters);

}  // namespace trainyard::forest
