// Tests that hyperparameters have SageMaker's names, ranges, defaults and errors.
#include "boosting/settings.hpp"

#include <gtest/gtest.h>

#include "boosting/number_ranges.hpp"

namespace trainyard::boosting {
namespace {

using Given = std::map<std::string, std::string>;

std::string error_of(Given given) {
  given.try_emplace("num_round", "10");
  const auto settings = parse_boosting_settings(given);
  return settings ? "" : settings.error().message;
}

TEST(Settings, DefaultsEqualSageMakers) {
  const auto settings = parse_boosting_settings({{"num_round", "7"}});
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->rounds, 7);
  EXPECT_EQ(settings->objective, "reg:squarederror");
  EXPECT_EQ(settings->early_stopping_rounds, 0);
  EXPECT_EQ(settings->folds, 0);
  EXPECT_FALSE(settings->has_csv_weights);
  EXPECT_TRUE(settings->saves_on_termination);
  EXPECT_TRUE(settings->parameters.empty());  // the library has the same defaults
  EXPECT_TRUE(settings->library_metrics.empty());
}

const Given kDocumented = {{"num_round", "\"100\""},
                           {"csv_weights", "1"},
                           {"early_stopping_rounds", "5"},
                           {"booster", "dart"},
                           {"verbosity", "2"},
                           {"nthread", "4"},
                           {"learning_rate", "0.2"},
                           {"min_split_loss", "0"},
                           {"max_depth", "3"},
                           {"min_child_weight", "1e-5"},
                           {"max_delta_step", "0"},
                           {"subsample", "0.5"},
                           {"colsample_bytree", "1"},
                           {"colsample_bylevel", ".5"},
                           {"colsample_bynode", "0.5"},
                           {"reg_lambda", "2"},
                           {"reg_alpha", "0"},
                           {"tree_method", "hist"},
                           {"sketch_eps", "0.03"},
                           {"scale_pos_weight", "2"},
                           {"updater", "grow_quantile_histmaker, prune"},
                           {"dsplit", "row"},
                           {"refresh_leaf", "1"},
                           {"process_type", "default"},
                           {"grow_policy", "lossguide"},
                           {"max_leaves", "7"},
                           {"max_bin", "64"},
                           {"predictor", "cpu_predictor"},
                           {"monotone_constraints", "(1, -1,0)"},
                           {"interaction_constraints", "[[1,2],[3]]"},
                           {"sample_type", "weighted"},
                           {"normalize_type", "forest"},
                           {"rate_drop", "0.1"},
                           {"one_drop", "1"},
                           {"skip_drop", "0"},
                           {"lambda_bias", "0"},
                           {"tweedie_variance_power", "1.5"},
                           {"objective", "multi:softprob"},
                           {"num_class", "3"},
                           {"base_score", "0.5"},
                           {"_kfold", "4"},
                           {"_num_cv_round", "2"},
                           {"_tuning_objective_metric", "validation:f1_macro"},
                           {"eval_metric", "mlogloss,merror,accuracy"},
                           {"seed", "-5"},
                           {"num_parallel_tree", "2"},
                           {"save_model_on_termination", "false"},
                           {"aft_loss_distribution", "normal"},
                           {"aft_loss_distribution_scale", "1.2"},
                           {"deterministic_histogram", "true"},
                           {"sampling_method", "uniform"},
                           {"use_dask_gpu_training", "false"},
                           {"sagemaker_region", "\"us-east-1\""}};

TEST(Settings, ParsesAllDocumentedHyperparameters) {
  const auto settings = parse_boosting_settings(kDocumented);
  ASSERT_TRUE(settings) << settings.error().message;
  const auto& parameters = settings->parameters;
  EXPECT_EQ(settings->rounds, 100);
  EXPECT_TRUE(settings->has_csv_weights);
  EXPECT_EQ(settings->early_stopping_rounds, 5);
  EXPECT_EQ(settings->folds, 4);
  EXPECT_EQ(settings->fold_rounds, 2);
  EXPECT_FALSE(settings->saves_on_termination);
  EXPECT_EQ(settings->classes, 3);
  EXPECT_EQ(settings->max_bin, 64);
  EXPECT_EQ(settings->library_metrics, (std::vector<std::string>{"mlogloss", "merror"}));
  EXPECT_EQ(settings->own_metrics, (std::vector<std::string>{"f1_macro", "accuracy"}));
  EXPECT_EQ(settings->stopping_metric, "f1_macro");
  EXPECT_EQ(parameters.at("eta"), "0.2");
  EXPECT_EQ(parameters.at("gamma"), "0.0");
  EXPECT_EQ(parameters.at("lambda"), "2.0");
  EXPECT_EQ(parameters.at("min_child_weight"), "1e-05");
  EXPECT_EQ(parameters.at("updater"), "grow_quantile_histmaker,prune");
  EXPECT_EQ(parameters.at("monotone_constraints"), "(1,-1,0)");
  EXPECT_EQ(parameters.at("interaction_constraints"), "[[1,2],[3]]");
  for (const char* own : {"num_round", "csv_weights", "_kfold", "dsplit", "learning_rate",
                          "sagemaker_region", "eval_metric", "sketch_eps"})
    EXPECT_FALSE(parameters.contains(own)) << own;
}

struct Wrong {
  Given given;
  const char* error;
};

const Wrong kWrong[] = {
    {{{"epochs", "3"}}, "Extraneous hyperparameter found: epochs"},
    {{{"num_round", "0"}}, "Hyperparameter num_round: 0 is not in [1, +inf)"},
    {{{"num_round", "99999999999"}}, "Hyperparameter num_round: 99999999999 is not in [1, +inf)"},
    {{{"num_round", "ten"}},
     "Hyperparameter num_round: could not parse value (caused by ValueError): 'ten'"},
    {{{"max_depth", "3.5"}},
     "Hyperparameter max_depth: could not parse value (caused by ValueError): '3.5'"},
    {{{"eta", "3"}}, "Hyperparameter eta: 3.0 is not in [0, 1]"},
    {{{"eta", "nan"}}, "Hyperparameter eta: could not parse value (caused by ValueError): 'nan'"},
    {{{"gamma", "inf"}}, "Hyperparameter gamma: inf is not in [0, +inf)"},
    {{{"learning_rate", "-0.1"}}, "Hyperparameter eta: -0.1 is not in [0, 1]"},
    {{{"eta", "0.1"}, {"learning_rate", "0.1"}},
     "Hyperparameter eta: it is given a second time, as learning_rate"},
    {{{"subsample", "0"}}, "Hyperparameter subsample: 0.0 is not in (0, 1]"},
    {{{"tweedie_variance_power", "2"}},
     "Hyperparameter tweedie_variance_power: 2.0 is not in (1, 2)"},
    {{{"seed", "2147483647"}},
     "Hyperparameter seed: 2147483647 is not in (-2147483648, 2147483647)"},
    {{{"booster", "forest"}},
     "Hyperparameter booster: forest is not in ['gbtree', 'gblinear', 'dart']"},
    {{{"num_class", "1"}}, "Hyperparameter num_class: 1 is not in [2, +inf)"},
    {{{"objective", "multi:softmax"}},
     "Require input for parameter 'num_class' for multi-classification"},
    {{{"num_class", "3"}},
     "Do not need to setup parameter 'num_class' for learning task other than "
     "multi-classification."},
    {{{"eval_metric", "auc"}},
     "Metric 'auc' can only be applied for classification and ranking problems."},
    {{{"eval_metric", "aft-nloglik"}},
     "Metric 'aft-nloglik' can only be applied for 'survival:aft' objective."},
    {{{"eval_metric", "rmse@3"}},
     "Metric 'rmse@3' is not supported. Parameter 'eval_metric' with customized threshold should "
     "be one of these options: 'error', 'ndcg', 'map'."},
    {{{"eval_metric", "error@x"}}, "Threshold value 't' in 'error@t' expects float input."},
    {{{"updater", "grow_gpu"}}, "Hyperparameter updater: value ['grow_gpu'] not in range ["},
    {{{"updater", "shotgun"}}, "Tree updater should be selected from these options: ["},
    {{{"updater", "prune"}, {"booster", "gblinear"}},
     "Linear updater should be one of these options: 'shotgun', 'coord_descent'."},
    {{{"updater", "sync"}, {"process_type", "update"}},
     "process_type 'update' can only be used with updater 'refresh' and 'prune'"},
    {{{"updater", "grow_colmaker,distcol"}}, "Only one tree grow plugin can be selected."},
    {{{"monotone_constraints", "(1,0)"}},
     "monotone_constraints can be used only when the tree_method parameter is set to either "
     "'exact' or 'hist'."},
    {{{"monotone_constraints", "(2)"}, {"tree_method", "hist"}},
     "Hyperparameter monotone_constraints: value (2) not in range [-1, 0, 1]"},
    {{{"monotone_constraints", "1,0"}, {"tree_method", "hist"}},
     "Hyperparameter monotone_constraints: could not parse value"},
    {{{"interaction_constraints", "[[1,2]]"}},
     "interaction_constraints can be used only when the tree_method parameter is set to either "
     "'exact', 'hist' or 'approx'."},
    {{{"interaction_constraints", "[[0,2]]"}, {"tree_method", "hist"}},
     "Hyperparameter interaction_constraints: value [[0,2]] not in range [1, +inf)"},
    {{{"interaction_constraints", "[1"}, {"tree_method", "hist"}},
     "Hyperparameter interaction_constraints: could not parse value: '[1'"},
    {{{"tree_method", "gpu_hist"}},
     "Hyperparameter tree_method: gpu_hist needs a GPU, and this server trains XGBoost on "
     "processors"},
    {{{"dsplit", "col"}}, "Hyperparameter dsplit: col is not supported"},
    {{{"_kfold", "1"}}, "Hyperparameter _kfold: 1 is not in [2, +inf)"},
    {{{"_kfold", "1000"}, {"_num_cv_round", "2"}},
     "Hyperparameter _kfold: with _num_cv_round more than 1000 models are trained"},
    {{{"_tuning_objective_metric", "validation:x"}},
     "Hyperparameter _tuning_objective_metric: 'validation:x' is not a metric of XGBoost"},
};

TEST(Settings, RejectsInvalidValuesWithSageMakersTexts) {
  for (const Wrong& each : kWrong) {
    const std::string error = error_of(each.given);
    EXPECT_EQ(error.find(each.error), 0u) << error << "\n" << each.error;
  }
  EXPECT_EQ(parse_boosting_settings({}).error().message,
            "Missing required hyperparameter: num_round");
}

TEST(Settings, AcceptsAllObjectivesAndMetrics) {
  for (const char* objective :
       {"binary:logistic", "binary:logitraw", "binary:hinge", "count:poisson", "rank:pairwise",
        "rank:ndcg", "rank:map", "reg:linear", "reg:squarederror", "reg:logistic", "reg:gamma",
        "reg:pseudohubererror", "reg:squaredlogerror", "reg:absoluteerror", "reg:tweedie",
        "survival:aft", "survival:cox"})
    EXPECT_EQ(error_of({{"objective", objective}}), "") << objective;
  for (const char* metric : {"error@0.7", "ndcg@5", "ndcg@5-", "map@3", "rmse", "logloss", "r2"})
    EXPECT_EQ(error_of({{"objective", "rank:ndcg"}, {"eval_metric", metric}}), "") << metric;
  EXPECT_TRUE(is_maximized("ndcg@5"));
  EXPECT_TRUE(is_maximized("auc"));
  EXPECT_FALSE(is_maximized("error@0.5"));
}

TEST(PythonNumber, MatchesPythonsOutput) {
  const std::pair<double, const char*> known[] = {
      {3, "3.0"},       {0.1, "0.1"},       {0, "0.0"},      {-2.5, "-2.5"},
      {1e-5, "1e-05"},  {0.0001, "0.0001"}, {1e16, "1e+16"}, {1e15, "1000000000000000.0"},
      {1e100, "1e+100"}};
  for (const auto& [value, text] : known) EXPECT_EQ(python_number(value), text);
}

}  // namespace
}  // namespace trainyard::boosting
