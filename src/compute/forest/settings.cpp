#include "forest/settings.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"

namespace trainyard::forest {
namespace {

constexpr size_t kTextShown = 64;
// SageMaker's algorithms have it in common; a sample does not depend on batches.
constexpr int64_t kMiniBatchMax = int64_t{1} << 31;

using Read = std::function<Result<void>(ForestSettings&, const std::string&)>;

struct Hyperparameter {
  std::string_view name;
  Read read;
  bool required = false;
};

std::string in_quotes(std::string_view text) { return "'" + shorten(text, kTextShown) + "'"; }

Read integer(int64_t least, int64_t most, std::function<void(ForestSettings&, int64_t)> set) {
  return [=](ForestSettings& settings, const std::string& text) -> Result<void> {
    const auto value = parse_int(text);
    if (!value) return invalid(in_quotes(text) + " is not of type 'integer'");
    if (*value < least)
      return invalid(std::to_string(*value) + " is less than the minimum of " +
                     std::to_string(least));
    if (*value > most)
      return invalid(std::to_string(*value) + " is greater than the maximum of " +
                     std::to_string(most));
    set(settings, *value);
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

// "\"100\"" -> 100; a text that is not a JSON string stays unchanged.
std::string without_quotes(const std::string& text) {
  if (text.size() < 2 || text.front() != '"') return text;
  const auto value = parse_json(text);
  return value && value->is_string() ? value->get<std::string>() : text;
}

bool belongs_to_the_sdk(const std::string& name) {
  return name.starts_with("sagemaker_") || name == "_tuning_objective_metric";
}

}  // namespace

Result<ForestSettings> parse_forest_settings(const std::map<std::string, std::string>& given) {
  ForestSettings settings;
  for (const auto& [name, text] : given) {
    if (belongs_to_the_sdk(name)) continue;
    const auto known = std::ranges::find(hyperparameters(), name, &Hyperparameter::name);
    if (known == hyperparameters().end())
      return invalid("Additional properties are not allowed (" + in_quotes(name) +
                     " was unexpected)");
    TRY(known->read(settings, without_quotes(text)).in("hyperparameter " + name));
  }
  for (const Hyperparameter& each : hyperparameters())
    if (each.required && !given.contains(std::string(each.name)))
      return invalid("'" + std::string(each.name) + "' is a required property");
  return settings;
}

}  // namespace trainyard::forest
