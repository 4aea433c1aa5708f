#include "forest/settings.hpp"

#include <functional>
#include <vector>

#include "base/json.hpp"
#include "contract/hyperparameters.hpp"

namespace trainyard::forest {
namespace {

// Common to SageMaker's algorithms, and ignored: a sample does not depend on batches.
constexpr int64_t kMiniBatchMax = int64_t{1} << 31;

using contract::in_quotes;
using Hyperparameter = contract::Hyperparameter<ForestSettings>;
using Read = std::function<Result<void>(ForestSettings&, const std::string&)>;

Read integer(int64_t least, int64_t most, std::function<void(ForestSettings&, int64_t)> set) {
  return [=](ForestSettings& settings, const std::string& text) -> Result<void> {
    set(settings, TRY(contract::parse_integer(text, least, most)));
    return ok();
  };
}

Result<void> read_metrics(ForestSettings& settings, const std::string& text) {
  const auto list = parse_json(text);
  if (!list || !list->is_array()) return invalid(in_quotes(text) + " is not of type 'array'");
  settings.has_accuracy = settings.has_fscore = false;
  for (const Json& each : *list) {
    if (each == "accuracy") {
      settings.has_accuracy = true;
    } else if (each == "precision_recall_fscore") {
      settings.has_fscore = true;
    } else {
      return invalid(in_quotes(each.is_string() ? each.get<std::string>() : dump(each)) +
                     " is not one of ['accuracy', 'precision_recall_fscore']");
    }
  }
  return ok();
}

const std::vector<Hyperparameter>& hyperparameters() {
  using S = ForestSettings;
  static const std::vector<Hyperparameter> all = {
      {"eval_metrics", read_metrics},
      {"feature_dim",
       integer(1, kDimensionsMax,
               [](S& settings, int64_t value) { settings.forest.dimensions = size_t(value); }),
       true},
      {"mini_batch_size", integer(1, kMiniBatchMax, [](S&, int64_t) {})},
      {"num_samples_per_tree", integer(1, kSamplesPerTreeMax,
                                       [](S& settings, int64_t value) {
                                         settings.forest.samples_per_tree = size_t(value);
                                       })},
      {"num_trees",
       integer(kTreesMin, kTreesMax,
               [](S& settings, int64_t value) { settings.forest.trees = size_t(value); })},
  };
  return all;
}

}  // namespace

Result<ForestSettings> parse_forest_settings(const std::map<std::string, std::string>& given) {
  ForestSettings settings;
  TRY(contract::read_by_table(hyperparameters(), given, settings));
  return settings;
}

}  // namespace trainyard::forest
