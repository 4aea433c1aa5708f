#include "boosting/settings.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "boosting/metrics/own_metrics.hpp"
#include "boosting/number_ranges.hpp"
#include "contract/hyperparameters.hpp"

namespace trainyard::boosting {
namespace {

constexpr size_t kValueShown = 64;
constexpr size_t kListItemsMax = 10'000;  // items of a list of constraints

constexpr int64_t kClassesMax = 1'000'000;  // each has trees of its own in each round

struct Number {
  const char* name;
  bool is_integer;
  NumberRange range;
};

const Number kNumbers[] = {
    {"_kfold", true, {"2", ""}},
    {"_num_cv_round", true, {"1", ""}},
    {"aft_loss_distribution_scale", false, {"0", "", true}},
    {"alpha", false, {"0", ""}},
    {"base_score", false, {"0", ""}},
    {"colsample_bylevel", false, {"0", "1", true}},
    {"colsample_bynode", false, {"0", "1", true}},
    {"colsample_bytree", false, {"0", "1", true}},
    {"csv_weights", true, {"0", "1"}},
    {"early_stopping_rounds", true, {"1", ""}},
    {"eta", false, {"0", "1"}},
    {"gamma", false, {"0", ""}},
    {"lambda", false, {"0", ""}},
    {"lambda_bias", false, {"0", "1"}},
    {"max_bin", true, {"0", ""}},
    {"max_delta_step", false, {"0", ""}},
    {"max_depth", true, {"0", ""}},
    {"max_leaves", true, {"0", ""}},
    {"min_child_weight", false, {"0", ""}},
    {"nthread", true, {"1", ""}},
    {"num_class", true, {"2", ""}},
    {"num_parallel_tree", true, {"1", ""}},
    {"num_round", true, {"1", ""}},
    {"one_drop", true, {"0", "1"}},
    {"rate_drop", false, {"0", "1"}},
    {"refresh_leaf", true, {"0", "1"}},
    {"scale_pos_weight", false, {"0", "", true}},
    {"seed", true, {"-2147483648", "2147483647", true, true}},
    {"sketch_eps", false, {"0", "1", true, true}},
    {"skip_drop", false, {"0", "1"}},
    {"subsample", false, {"0", "1", true}},
    {"tweedie_variance_power", false, {"1", "2", true, true}},
    {"verbosity", true, {"0", "3"}},
};

struct Choice {
  const char* name;
  std::vector<std::string> values;
  std::set<std::string> for_gpus = {};  // values that SageMaker accepts and that need a GPU
};

const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
      {"aft_loss_distribution", {"normal", "logistic", "extreme"}},
      {"booster", {"gbtree", "gblinear", "dart"}},
      {"deterministic_histogram", {"true", "false"}},
      {"dsplit", {"row", "col"}},
      {"grow_policy", {"depthwise", "lossguide"}},
      {"normalize_type", {"tree", "forest"}},
      {"objective",
       {"aft_loss_distribution",
        "binary:logistic",
        "binary:logitraw",
        "binary:hinge",
        "count:poisson",
        "multi:softmax",
        "multi:softprob",
        "rank:pairwise",
        "rank:ndcg",
        "rank:map",
        "reg:linear",
        "reg:squarederror",
        "reg:logistic",
        "reg:gamma",
        "reg:pseudohubererror",
        "reg:squaredlogerror",
        "reg:absoluteerror",
        "reg:tweedie",
        "survival:aft",
        "survival:cox"}},
      {"predictor", {"auto", "cpu_predictor", "gpu_predictor"}, {"gpu_predictor"}},
      {"process_type", {"default", "update"}},
      {"sample_type", {"uniform", "weighted"}},
      {"sampling_method", {"uniform", "gradient_based"}, {"gradient_based"}},
      {"save_model_on_termination", {"true", "false"}},
      {"tree_method", {"auto", "exact", "approx", "hist", "gpu_hist"}, {"gpu_hist"}},
      {"use_dask_gpu_training", {"true", "false"}, {"true"}},
  };
  return all;
}

const std::vector<std::string>& tree_updaters() {
  static const std::vector<std::string> all = {
      "grow_colmaker", "distcol", "grow_histmaker", "grow_local_histmaker",   "grow_skmaker",
      "sync",          "refresh", "prune",          "grow_quantile_histmaker"};
  return all;
}

const std::vector<std::string>& updaters() {
  static const std::vector<std::string> all = [] {
    auto both = tree_updaters();
    both.insert(both.end(), {"shotgun", "coord_descent"});
    return both;
  }();
  return all;
}

const std::map<std::string, std::string>& aliases() {
  static const std::map<std::string, std::string> all = {{"learning_rate", "eta"},
                                                         {"min_split_loss", "gamma"},
                                                         {"reg_lambda", "lambda"},
                                                         {"reg_alpha", "alpha"}};
  return all;
}

const char* const kMaximized[] = {"accuracy", "auc",       "aucpr",           "balanced_accuracy",
                                  "f1",       "f1_binary", "f1_macro",        "map",
                                  "ndcg",     "precision", "precision_macro", "precision_micro",
                                  "r2",       "recall",    "recall_macro",    "recall_micro"};
const char* const kMinimized[] = {"aft-nloglik",
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

std::vector<std::string> all_metrics() {
  std::vector<std::string> all(std::begin(kMaximized), std::end(kMaximized));
  all.insert(all.end(), std::begin(kMinimized), std::end(kMinimized));
  return all;
}

Error of_hyperparameter(const std::string& name, const std::string& why) {
  return invalid("Hyperparameter " + name + ": " + why);
}
Error out_of_range(const std::string& name, const std::string& value, const std::string& range) {
  return of_hyperparameter(name, shorten(value, kValueShown) + " is not in " + range);
}
Error list_out_of_range(const std::string& name, const std::string& value,
                        const std::string& range) {
  return of_hyperparameter(name, "value " + shorten(value, kValueShown) + " not in range " + range);
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

using Given = std::map<std::string, std::string>;

// Returns the hyperparameters with aliases replaced, without quotes, and without those that SDKs
// add.
Result<Given> plain_names(const Given& given) {
  Given plain;
  for (const auto& [name, text] : given) {
    if (name.starts_with("sagemaker_")) continue;
    const auto alias = aliases().find(name);
    const std::string& own = alias == aliases().end() ? name : alias->second;
    if (alias != aliases().end() && given.contains(own))
      return of_hyperparameter(own, "it is given a second time, as " + name);
    plain[own] = contract::without_quotes(text);
  }
  return plain;
}

Result<std::string> check_number(const Number& number, const std::string& text) {
  const Error unreadable = of_hyperparameter(
      number.name, "could not parse value (caused by ValueError): " + contract::in_quotes(text));
  const std::string trimmed(trim(text));
  if (number.is_integer) {
    const auto value = parse_int(trimmed);
    if (!value) return unreadable;
    // The library stores an int: larger values are invalid.
    if (!number.range.contains(double(*value)) || *value > INT32_MAX || *value < INT32_MIN)
      return out_of_range(number.name, std::to_string(*value), number.range.text());
    return std::to_string(*value);
  }
  const auto value = parse_double(trimmed);
  if (!value || std::isnan(*value)) return unreadable;
  if (std::isinf(*value) || !number.range.contains(*value))
    return out_of_range(number.name, python_number(*value), number.range.text());
  return python_number(*value);
}

Result<std::string> check_choice(const Choice& choice, const std::string& text) {
  if (!contains(choice.values, text))
    return out_of_range(choice.name, text, python_list(choice.values));
  if (choice.for_gpus.contains(text))
    return of_hyperparameter(choice.name, text +
                                              " needs a GPU, and this server trains XGBoost on "
                                              "processors: leave it out, or use tree_method hist");
  return text;
}

Result<std::vector<std::string>> comma_list(const std::string& text) {
  std::vector<std::string> items;
  for (const std::string_view each : split(text, ',')) items.emplace_back(trim(each));
  if (items.size() > kListItemsMax)
    return invalid(std::to_string(items.size()) + " values: use at most " +
                   std::to_string(kListItemsMax));
  return items;
}

Result<void> check_updaters(const Given& given, const std::vector<std::string>& values) {
  for (const auto& each : values)
    if (!contains(updaters(), each))
      return list_out_of_range("updater", python_list(values), python_list(updaters()));
  const auto value_of = [&](const char* name) {
    const auto found = given.find(name);
    return found == given.end() ? std::string() : found->second;
  };
  if (value_of("booster") == "gblinear") {
    if (values.size() != 1 || (values[0] != "shotgun" && values[0] != "coord_descent"))
      return invalid("Linear updater should be one of these options: 'shotgun', 'coord_descent'.");
    return ok();
  }
  if (value_of("process_type") == "update") {
    for (const auto& each : values)
      if (each != "refresh" && each != "prune")
        return invalid("process_type 'update' can only be used with updater 'refresh' and 'prune'");
    return ok();
  }
  int growing = 0;
  for (const auto& each : values) {
    if (!contains(tree_updaters(), each))
      return invalid("Tree updater should be selected from these options: " +
                     python_list(tree_updaters()));
    growing += each.starts_with("grow_") || each == "distcol";
  }
  if (growing > 1)
    return invalid(
        "Only one tree grow plugin can be selected. Choose one from the following: "
        "'grow_colmaker', 'distcol', 'grow_histmaker', 'grow_local_histmaker', 'grow_skmaker'");
  return ok();
}

// Converts "(1,-1,0)" or "[1,-1,0]" to the library's format.
Result<std::string> check_monotone(const std::string& text) {
  std::string inner(trim(text));
  const bool tuple = inner.size() > 1 && inner.front() == '(' && inner.back() == ')';
  const bool list = inner.size() > 1 && inner.front() == '[' && inner.back() == ']';
  if (!tuple && !list)
    return of_hyperparameter("monotone_constraints",
                             "could not parse value: " + contract::in_quotes(text));
  inner = inner.substr(1, inner.size() - 2);
  if (inner.ends_with(',')) inner.pop_back();  // a tuple of one
  std::string plain;
  for (const auto& each : TRY(comma_list(inner).in("Hyperparameter monotone_constraints"))) {
    if (each != "-1" && each != "0" && each != "1")
      return list_out_of_range("monotone_constraints", text, "[-1, 0, 1]");
    plain += (plain.empty() ? "(" : ",") + each;
  }
  return plain + ")";
}

Result<std::string> check_interaction(const std::string& text) {
  const auto lists = parse_json(text);
  if (!lists || !lists->is_array() || lists->size() > kListItemsMax)
    return of_hyperparameter("interaction_constraints",
                             "could not parse value: " + contract::in_quotes(text));
  for (const Json& list : *lists) {
    if (!list.is_array() || list.size() > kListItemsMax)
      return of_hyperparameter("interaction_constraints",
                               "could not parse value: " + contract::in_quotes(text));
    for (const Json& each : list)
      if (!each.is_number_integer() || each.get<int64_t>() < 1 || each.get<int64_t>() > INT32_MAX)
        return list_out_of_range("interaction_constraints", text, "[1, +inf)");
  }
  return dump(*lists);
}

Result<void> check_metric(const std::string& metric) {
  const size_t at = metric.find('@');
  if (at == std::string::npos) {
    if (!contains(all_metrics(), metric))
      return list_out_of_range("eval_metric", "['" + metric + "']", python_list(all_metrics()));
    return ok();
  }
  const std::string name(trim(metric.substr(0, at)));
  if (name != "error" && name != "ndcg" && name != "map")
    return invalid("Metric " + contract::in_quotes(metric) +
                   " is not supported. Parameter 'eval_metric' with customized threshold should be "
                   "one of these options: 'error', 'ndcg', 'map'.");
  std::string threshold(trim(metric.substr(at + 1)));
  if (threshold.ends_with('-')) threshold.pop_back();  // "ndcg@5-": of empty groups
  const auto value = parse_double(threshold);
  if (!value || !std::isfinite(*value))
    return invalid("Threshold value 't' in '" + name + "@t' expects float input.");
  return ok();
}

void add_metric(BoostingSettings& settings, const std::string& metric) {
  auto& list = is_own_metric(metric) ? settings.own_metrics : settings.library_metrics;
  if (!contains(list, metric)) list.push_back(metric);
}

Result<void> read_metrics(const Given& given, BoostingSettings& settings) {
  std::vector<std::string> metrics;
  if (const auto found = given.find("eval_metric"); found != given.end())
    metrics = TRY(comma_list(found->second).in("Hyperparameter eval_metric"));
  if (const auto found = given.find("_tuning_objective_metric"); found != given.end()) {
    const auto parts = split(found->second, ':');
    const std::string name(trim(parts.back()));
    if (parts.size() != 2 || (parts[0] != "train" && parts[0] != "validation") ||
        !contains(all_metrics(), name))
      return of_hyperparameter("_tuning_objective_metric",
                               contract::in_quotes(found->second) + " is not a metric of XGBoost");
    if (!contains(metrics, name)) metrics.insert(metrics.begin(), name);
    settings.stopping_metric = name;
  } else if (!metrics.empty()) {
    settings.stopping_metric = metrics.back();
  }
  for (const auto& metric : metrics) {
    TRY(check_metric(metric));
    if (metric == "auc" && !settings.objective.starts_with("binary:") &&
        !settings.objective.starts_with("rank:"))
      return invalid("Metric 'auc' can only be applied for classification and ranking problems.");
    if (metric == "aft-nloglik" && settings.objective != "survival:aft")
      return invalid("Metric 'aft-nloglik' can only be applied for 'survival:aft' objective.");
    add_metric(settings, metric);
  }
  return ok();
}

Result<void> check_together(const Given& given, BoostingSettings& settings) {
  if (settings.classes > kClassesMax)
    return of_hyperparameter("num_class", "more than " + std::to_string(kClassesMax) + " classes");
  const bool multi = settings.objective.starts_with("multi:");
  if (multi && settings.classes == 0)
    return invalid("Require input for parameter 'num_class' for multi-classification");
  if (!multi && settings.classes != 0)
    return invalid(
        "Do not need to setup parameter 'num_class' for learning task other than "
        "multi-classification.");
  const auto tree_method = given.contains("tree_method") ? given.at("tree_method") : "";
  if (given.contains("monotone_constraints") && tree_method != "exact" && tree_method != "hist")
    return invalid(
        "monotone_constraints can be used only when the tree_method parameter is set to either "
        "'exact' or 'hist'.");
  if (given.contains("interaction_constraints") && tree_method != "exact" &&
      tree_method != "hist" && tree_method != "approx")
    return invalid(
        "interaction_constraints can be used only when the tree_method parameter is set to either "
        "'exact', 'hist' or 'approx'.");
  if (given.contains("dsplit") && given.at("dsplit") == "col")
    return of_hyperparameter("dsplit", "col is not supported: rows are divided among hosts");
  if (settings.folds * settings.fold_rounds > kFoldsMax)
    return of_hyperparameter("_kfold", "with _num_cv_round more than " + std::to_string(kFoldsMax) +
                                           " models are trained");
  return ok();
}

// Returns false for a name that is in no table.
Result<bool> read_value(const Given& given, const std::string& name, const std::string& text,
                        BoostingSettings& settings) {
  auto& parameters = settings.parameters;
  if (const auto number = std::ranges::find(kNumbers, name, &Number::name);
      number != std::end(kNumbers)) {
    parameters[name] = TRY(check_number(*number, text));
  } else if (const auto choice = std::ranges::find(choices(), name, &Choice::name);
             choice != choices().end()) {
    parameters[name] = TRY(check_choice(*choice, text));
  } else if (name == "updater") {
    const auto values = TRY(comma_list(text).in("Hyperparameter updater"));
    TRY(check_updaters(given, values));
    parameters[name] = join(values, ",");
  } else if (name == "monotone_constraints") {
    parameters[name] = TRY(check_monotone(text));
  } else if (name == "interaction_constraints") {
    parameters[name] = TRY(check_interaction(text));
  } else {
    return name == "eval_metric" || name == "_tuning_objective_metric";
  }
  return true;
}

// Moves values that are not parameters of the library to the members.
void take_own(BoostingSettings& settings) {
  auto& parameters = settings.parameters;
  const auto take = [&](const char* name) -> std::optional<std::string> {
    const auto found = parameters.extract(name);
    return found ? std::optional(found.mapped()) : std::nullopt;
  };
  const auto take_integer = [&](const char* name, int64_t& value) {
    if (const auto text = take(name)) value = *parse_int(*text);
  };
  take_integer("num_round", settings.rounds);
  take_integer("early_stopping_rounds", settings.early_stopping_rounds);
  take_integer("_kfold", settings.folds);
  take_integer("_num_cv_round", settings.fold_rounds);
  settings.has_csv_weights = take("csv_weights") == "1";
  settings.saves_on_termination = take("save_model_on_termination") != "false";
  for (const char* name : {"dsplit", "use_dask_gpu_training", "deterministic_histogram",
                           "sampling_method", "sketch_eps"})
    take(name);  // for GPUs or older versions; the current library has none of them
  if (const auto found = parameters.find("objective"); found != parameters.end())
    settings.objective = found->second;
  if (const auto found = parameters.find("num_class"); found != parameters.end())
    settings.classes = *parse_int(found->second);
  if (const auto found = parameters.find("max_bin"); found != parameters.end())
    settings.max_bin = *parse_int(found->second);
}

}  // namespace

bool is_maximized(std::string_view metric) {
  return std::ranges::find(kMaximized, metric.substr(0, metric.find('@'))) != std::end(kMaximized);
}

Result<BoostingSettings> parse_boosting_settings(const Given& hyperparameters) {
  const Given given = TRY(plain_names(hyperparameters));
  if (!given.contains("num_round")) return invalid("Missing required hyperparameter: num_round");
  BoostingSettings settings;
  for (const auto& [name, text] : given)
    if (!TRY(read_value(given, name, text, settings)))
      return invalid("Extraneous hyperparameter found: " + shorten(name, kValueShown));
  take_own(settings);
  TRY(check_together(given, settings));
  TRY(read_metrics(given, settings));
  return settings;
}

}  // namespace trainyard::boosting
