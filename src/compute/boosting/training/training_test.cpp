// Tests what surrounds the XGBoost library: cross validation, early stopping, checkpoints,
// metrics, the agreement of hosts, and the texts of failures.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "boosting/failures.hpp"
#include "boosting/library/booster.hpp"
#include "boosting/library/library_call.hpp"
#include "boosting/metrics/own_metrics.hpp"
#include "boosting/shares.hpp"
#include "boosting/training/checkpoints.hpp"
#include "boosting/training/cross_validation.hpp"
#include "boosting/training/early_stopping.hpp"
#include "boosting/training/folds.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::boosting {
namespace {

TEST(Folds, HaveEqualSharesOfEachClass) {
  std::vector<float> labels;
  for (int i = 0; i < 103; ++i) labels.push_back(float(i % 10 == 0));
  const auto folds = divide_into_folds(labels, 5, true, 7);
  std::map<std::pair<int, float>, int> counts;
  std::map<int, int> sizes;
  for (size_t i = 0; i < labels.size(); ++i) {
    ++counts[{folds[i], labels[i]}];
    ++sizes[folds[i]];
  }
  for (int fold = 0; fold < 5; ++fold) {
    EXPECT_NEAR(sizes[fold], 103 / 5.0, 1) << fold;
    EXPECT_NEAR((counts[{fold, 1.0f}]), 11 / 5.0, 1) << fold;
  }
  EXPECT_EQ(divide_into_folds(labels, 5, true, 7), folds);
  EXPECT_NE(divide_into_folds(labels, 5, true, 8), folds);
  EXPECT_NE(divide_into_folds(labels, 5, false, 7), folds);
}

TEST(EarlyStopping, StopsAfterRoundsWithoutABetterValue) {
  EarlyStopping least(2, false);
  const double values[] = {5, 4, 4, 3, 3.5, 3};
  const bool better[] = {true, true, false, true, false, false};
  for (int round = 0; round < 6; ++round) {
    EXPECT_FALSE(least.stops()) << round;
    EXPECT_EQ(least.add(round, values[round]), better[round]) << round;
  }
  EXPECT_TRUE(least.stops());
  EXPECT_EQ(least.best_round(), 3);
  EarlyStopping most(1, true);
  EXPECT_FALSE(most.add(0, std::nan("")));
  EXPECT_TRUE(most.add(1, -1));
  EXPECT_TRUE(most.add(2, 0));
  EXPECT_FALSE(most.add(3, std::nan("")));
  EXPECT_TRUE(most.stops());
  EarlyStopping never(0, true);
  for (int round = 0; round < 100; ++round) never.add(round, 0);
  EXPECT_FALSE(never.stops());
}

TEST(Checkpoints, KeepTheLastFive) {
  namespace fs = std::filesystem;
  os::TemporaryDirectory folder;
  const std::string path = folder.path() + "/checkpoints";
  Checkpoints checkpoints(path);
  EXPECT_TRUE(checkpoints.list()->empty());
  for (int round = 0; round < 4; ++round)
    ASSERT_TRUE(checkpoints.save(round, "model " + std::to_string(round)));
  std::ofstream(path + "/xgboost-checkpoint.0.sagemaker-uploading") << "";
  std::ofstream(path + "/xgboost-checkpoint.7x") << "";
  std::ofstream(path + "/xgboost-checkpoint.99999999999999999999") << "";
  for (int round = 4; round < 8; ++round)
    ASSERT_TRUE(checkpoints.save(round, "model " + std::to_string(round)));
  const auto found = checkpoints.list();
  ASSERT_TRUE(found) << found.error().message;
  std::vector<int64_t> rounds;
  for (const Checkpoint& each : *found) rounds.push_back(each.round);
  EXPECT_EQ(rounds, (std::vector<int64_t>{7, 6, 5, 4, 3, 0}));  // 0 is being uploaded
  EXPECT_FALSE(fs::exists(path + "/xgboost-checkpoint.7.sagemaker-ignore"));
  EXPECT_TRUE(Checkpoints("").save(0, "x"));
  EXPECT_TRUE(Checkpoints("").list()->empty());
}

MetricSums sums_of(size_t classes, std::initializer_list<std::pair<double, double>> rows) {
  MetricSums sums(classes);
  for (const auto& [label, prediction] : rows) sums.add(label, prediction);
  return sums;
}

TEST(OwnMetrics, MatchScikitLearn) {
  const auto binary = sums_of(2, {{1, 1}, {1, 0}, {0, 0}, {0, 1}, {1, 1}, {0, 0}, {0, 0}});
  const std::pair<const char*, double> known[] = {
      {"accuracy", 5 / 7.0},
      {"balanced_accuracy", (3 / 4.0 + 2 / 3.0) / 2},
      {"f1", (2 * 3 / 8.0 + 2 * 2 / 6.0) / 2},
      {"f1_macro", (2 * 3 / 8.0 + 2 * 2 / 6.0) / 2},
      {"f1_binary", 2 * 2 / 6.0},
      {"precision", 2 / 3.0},
      {"precision_macro", (3 / 4.0 + 2 / 3.0) / 2},
      {"precision_micro", 5 / 7.0},
      {"recall", 2 / 3.0},
      {"recall_macro", (3 / 4.0 + 2 / 3.0) / 2},
      {"recall_micro", 5 / 7.0},
  };
  for (const auto& [metric, value] : known) {
    EXPECT_TRUE(is_own_metric(metric)) << metric;
    EXPECT_DOUBLE_EQ(binary.value(metric), value) << metric;
  }
  const auto values = sums_of(0, {{1, 2}, {2, 2}, {3, 1}});
  EXPECT_DOUBLE_EQ(values.value("mse"), 5 / 3.0);
  EXPECT_DOUBLE_EQ(values.value("r2"), 1 - 5 / 2.0);
  EXPECT_TRUE(std::isnan(values.value("accuracy")));
  EXPECT_DOUBLE_EQ(sums_of(0, {{1, 1}, {1, 1}}).value("r2"), 1);
  // A class that does not occur does not count.
  const auto three = sums_of(4, {{0, 0}, {1, 1}, {2, 1}});
  EXPECT_DOUBLE_EQ(three.value("f1"), (1 + 2 / 3.0 + 0) / 3);
  EXPECT_TRUE(std::isnan(three.value("f1_binary")));
  EXPECT_TRUE(std::isnan(MetricSums(2).value("accuracy")));
  EXPECT_FALSE(is_own_metric("auc"));
}

TEST(OwnMetrics, AddSumsOfHosts) {
  auto all = sums_of(2, {{1, 1}, {1, 0}, {0, 0}, {0, 1}});
  auto first = sums_of(2, {{1, 1}, {1, 0}});
  auto second = sums_of(2, {{0, 0}, {0, 1}});
  for (size_t i = 0; i < first.sums().size(); ++i) first.sums()[i] += second.sums()[i];
  for (const char* metric : {"accuracy", "f1", "precision", "recall_macro"})
    EXPECT_DOUBLE_EQ(first.value(metric), all.value(metric)) << metric;
}

TEST(Evaluations, ReadTheLibrarysLinesAndPrintSageMakersFormat) {
  const auto all =
      parse_evaluations("[3]\ttrain-error@0.7:0.25\ttrain-aft-nloglik:1.5\tvalidation-auc:nan");
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].metric, "error@0.7");
  EXPECT_EQ((*all)[1].metric, "aft-nloglik");
  EXPECT_EQ((*all)[2].set, "validation");
  EXPECT_TRUE(std::isnan((*all)[2].value));
  EXPECT_EQ(metric_line(3, {{"train", "rmse", 1.23456789}, {"validation", "rmse", 2}}),
            "[3]#011train-rmse:1.23457#011validation-rmse:2.00000");
  EXPECT_FALSE(parse_evaluations("[3]\ttrain"));
}

TEST(CrossValidation, MetricsAreMeans) {
  TrainedModel first, second;
  first.evaluations = {{"train", "rmse", 1},
                       {"train", "mae", 2},
                       {"validation", "rmse", 3},
                       {"validation", "mae", 4}};
  second.evaluations = {{"train", "rmse", 2},
                        {"train", "mae", 4},
                        {"validation", "rmse", 5},
                        {"validation", "mae", 8}};
  EXPECT_EQ(metric_line(9, mean_evaluations({first, second})),
            "[9]#011train-rmse:1.50000#011validation-rmse:4.00000#011train-mae:3.00000#011"
            "validation-mae:6.00000");
}

TEST(Failures, HaveReadableMessages) {
  EXPECT_EQ(plain_library_message(
                "[23:10:43] ../rabit/include/rabit/internal/utils.h:86: Allreduce failed"),
            "Allreduce failed");
  EXPECT_EQ(plain_library_message("[09:45:00] ../src/x.cc:39: Check failed: a: label must be\n"
                                  "Stack trace:\n  [bt] (0) /lib"),
            "Check failed: a: label must be");
  EXPECT_EQ(plain_library_message("value 3: is wrong"), "value 3: is wrong");
  EXPECT_EQ(plain_library_message(""), "");
  EXPECT_EQ(first_cause({"Allreduce failed", "", "Check failed"}), "Check failed");
  EXPECT_EQ(first_cause({"", "Allreduce failed"}), "Allreduce failed");
  EXPECT_EQ(failure_text_of(invalid("x")), "Customer Error: x");
  EXPECT_EQ(failure_text_of(unavailable("x")), "x");
  EXPECT_EQ(failure_text_of(training_failure(invalid("label must be in [0, num_class)"))),
            "Customer Error: label must be in [0, num_class)");
  EXPECT_EQ(failure_text_of(training_failure(invalid("x"))),
            "XGB train call failed with exception: x");
}

HostShare share(uint64_t rows, uint64_t columns, bool sparse = false) {
  HostShare host;
  host.train = {rows, columns, sparse, false};
  return host;
}

std::string disagreement(const std::vector<HostShare>& shares) {
  std::vector<HostShare> sent;
  for (const HostShare& each : shares) sent.push_back(*decode_share(encode(each)));
  const auto agreement = agree(sent, {"algo-1", "algo-2"});
  return agreement ? std::to_string(agreement->columns) + "x" + std::to_string(agreement->rows)
                   : agreement.error().message;
}

TEST(Shares, NameHostsThatDisagree) {
  EXPECT_EQ(disagreement({share(3, 4), share(2, 4)}), "4x5");
  EXPECT_EQ(disagreement({share(3, 4, true), share(2, 9, true)}), "9x5");
  EXPECT_EQ(disagreement({share(3, 4), share(0, 0)}).find("channel train: host algo-2 has no data"),
            0u);
  EXPECT_EQ(
      disagreement({share(3, 4), share(2, 5)}),
      "channel train: host algo-2 has rows of 5 features, but the channel train on algo-1 has "
      "rows of 4");
  HostShare validated = share(3, 4);
  validated.has_validation = true;
  EXPECT_EQ(
      disagreement({validated, validated}).find("channel validation: host algo-1 has no data"), 0u);
  HostShare grouped = share(3, 4, true);
  grouped.train.has_groups = true;
  EXPECT_NE(disagreement({grouped, share(3, 4, true)}).find("have a qid on one of the hosts"),
            std::string::npos);
  EXPECT_NE(disagreement({share(3, 4), share(UINT64_MAX, 4)}).find("invalid number"),
            std::string::npos);
  HostShare stopped = share(0, 0);
  stopped.stopped = true;
  EXPECT_EQ(disagreement({share(3, 4), stopped}), "0x0");
  EXPECT_FALSE(decode_share("short"));
}

}  // namespace
}  // namespace trainyard::boosting
