// Runs jobs with one host and with several, whose threads share this process. Tests models,
// metrics, checkpoints, stops, cross validation, and rejected input.
#include "boosting/job.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "base/json.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "boosting/predict.hpp"
#include "collectives/testing/groups.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::boosting {
namespace {

namespace fs = std::filesystem;
constexpr const char* kCsvType = "text/csv";

struct Outcome {
  Result<void> done = ok();
  std::vector<std::string> lines;
  std::string failure;

  bool printed(std::string_view text) const {
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
  std::vector<std::string> metric_lines() const {
    std::vector<std::string> found;
    for (const auto& line : lines)
      if (line.starts_with('[')) found.push_back(line);
    return found;
  }
};

// Returns the value of a metric in a line; NaN if the line does not have it.
double metric_of(const std::string& line, const std::string& name) {
  const size_t at = line.find("#011" + name + ":");
  if (at == std::string::npos) return std::nan("");
  const auto text = line.substr(at + name.size() + 5);
  return *parse_double(text.substr(0, text.find('#')));
}

// Hosts makes the files of the hosts of one job, and runs them.
class Hosts {
 public:
  explicit Hosts(size_t count, std::map<std::string, std::string> hyperparameters = {})
      : hyperparameters_(std::move(hyperparameters)) {
    hyperparameters_.try_emplace("num_round", "20");
    for (const auto& endpoint : collectives::testing::endpoints(int(count)))
      names_.push_back(endpoint.host);
    for (size_t host = 0; host < count; ++host) {
      fs::create_directories(base(host) + "/input/config");
      fs::create_directories(base(host) + "/model");
      write(host, "input/config/resourceconfig.json",
            dump(Json{{"current_host", names_[host]},
                      {"hosts", names_},
                      {"network_interface_name", "lo"}}));
      write(host, "input/config/hyperparameters.json", dump(Json(hyperparameters_)));
    }
  }

  void add_channel(const std::string& name, const std::string& type, bool sharded = false,
                   const char* mode = "File") {
    channels_[name] = {{"TrainingInputMode", mode},
                       {"S3DistributionType", sharded ? "ShardedByS3Key" : "FullyReplicated"},
                       {"RecordWrapperType", "None"}};
    if (!type.empty()) channels_[name]["ContentType"] = type;
    for (size_t host = 0; host < names_.size(); ++host) {
      write(host, "input/config/inputdataconfig.json", dump(channels_));
      fs::create_directories(base(host) + "/input/data/" + name);
    }
  }
  void write(size_t host, const std::string& path, std::string_view text) {
    const std::string whole = base(host) + "/" + path;
    fs::create_directories(fs::path(whole).parent_path());
    ASSERT_TRUE(os::write_file(whole, text));
  }
  void keep_checkpoints() {
    for (size_t host = 0; host < names_.size(); ++host)
      write(host, "input/config/checkpointconfig.json",
            dump(Json{{"LocalPath", base(host) + "/checkpoints"}}));
  }
  std::string base(size_t host) const { return folder_.path() + "/" + std::to_string(host); }
  const std::string& name(size_t host) const { return names_[host]; }
  std::string model(const std::string& file = "xgboost-model") const {
    const auto bytes = os::read_file(base(0) + "/model/" + file);
    return bytes ? *bytes : "";
  }

  // `watch` is called with each line of the first host.
  std::vector<Outcome> run(const std::function<void(std::string_view)>& watch = {},
                           std::atomic<bool>* stop = nullptr, uint64_t memory = 0) {
    std::vector<Outcome> outcomes(names_.size());
    std::vector<std::thread> threads;
    std::atomic<bool> never = false;
    for (size_t host = 0; host < names_.size(); ++host) {
      threads.emplace_back([&, host] {
        os::MachineClock clock;
        BoostingJobOptions options;
        options.base = base(host);
        options.shared_value = folder_.path();
        options.memory = memory;
        outcomes[host].done =
            run_boosting_job(options, clock, stop ? *stop : never, [&](std::string_view line) {
              outcomes[host].lines.emplace_back(line);
              if (watch && host == 0) watch(line);
            });
        const auto failure = os::read_file(base(host) + "/output/failure");
        outcomes[host].failure = failure ? *failure : "";
      });
    }
    for (auto& thread : threads) thread.join();
    return outcomes;
  }

 private:
  os::TemporaryDirectory folder_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> hyperparameters_;
  Json channels_ = Json::object();
};

// Returns rows of two classes, which a curve separates.
std::string rows(uint64_t seed, int count, bool labelled = true) {
  SeededRandom random(seed);
  std::string csv;
  for (int i = 0; i < count; ++i) {
    const auto x = double(random.below(1000)) / 100, y = double(random.below(1000)) / 100;
    if (labelled) csv += (x * x / 10 > y ? "1," : "0,");
    csv += std::to_string(x) + "," + std::to_string(y) + "\n";
  }
  return csv;
}

const std::map<std::string, std::string> kBinary = {
    {"objective", "binary:logistic"}, {"eval_metric", "logloss,auc"}, {"tree_method", "hist"}};

void expect_done(const std::vector<Outcome>& outcomes) {
  for (const Outcome& each : outcomes) EXPECT_TRUE(each.done) << each.done.error().message;
}

TEST(BoostingJob, ASingleHostTrainsAndScores) {
  Hosts job(1, kBinary);
  job.add_channel("train", kCsvType);
  job.add_channel("validation", kCsvType);
  job.write(0, "input/data/train/a.csv", rows(1, 700));
  job.write(0, "input/data/train/deep/b.csv", rows(2, 300));
  job.write(0, "input/data/train/_hidden", "x");
  job.write(0, "input/data/validation/c.csv", rows(3, 500));
  const auto outcomes = job.run();
  expect_done(outcomes);
  const auto lines = outcomes[0].metric_lines();
  ASSERT_EQ(lines.size(), 20u);
  EXPECT_TRUE(lines[0].starts_with("[0]#011train-logloss:0."));
  EXPECT_TRUE(lines[19].starts_with("[19]#011train-logloss:"));
  EXPECT_GT(metric_of(lines[19], "validation-auc"), 0.97);
  EXPECT_TRUE(outcomes[0].printed("Train matrix has 1000 rows and 2 columns"));
  EXPECT_TRUE(outcomes[0].printed("Validation matrix has 500 rows"));

  const auto model = load_stored_model(job.base(0) + "/model");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->objective, "binary:logistic");
  const auto reply = predict(*model, "9,1\n1,9\n", {});
  ASSERT_TRUE(reply) << reply.error().message;
  const auto scores = split(*reply, '\n');
  EXPECT_GT(*parse_double(scores[0]), 0.9);
  EXPECT_LT(*parse_double(scores[1]), 0.1);
  const auto json = predict(*model, "9,1\n1,9\n", {.accept = "application/json"});
  EXPECT_EQ((*parse_json(*json))["predictions"].size(), 2u);
  const auto sparse = predict(*model, "0:9 1:1\n0 0:1 1:9\n",
                              {.content_type = "text/libsvm", .accept = "application/jsonlines"});
  ASSERT_TRUE(sparse) << sparse.error().message;
  EXPECT_FLOAT_EQ((*parse_json(split(*sparse, '\n')[0]))["score"].get<float>(),
                  float(*parse_double(scores[0])));
  EXPECT_EQ(predict(*model, "9,1,3\n", {}).error().message,
            "Feature size of csv inference data 3 is not consistent with feature size of trained "
            "model 2.");
  EXPECT_FALSE(predict(*model, "", {}));
  EXPECT_FALSE(predict(*model, "1,2\n", {.accept = "image/png"}));
  EXPECT_FALSE(load_stored_model(job.base(0)));
}

// Trains on rows of 1 to 4 files; returns the last line of metrics.
std::string last_line(size_t hosts, bool sharded) {
  Hosts job(hosts, kBinary);
  job.add_channel("train", kCsvType, sharded);
  job.add_channel("validation", kCsvType);
  for (size_t file = 0; file < 4; ++file)
    for (size_t host = 0; host < hosts; ++host)
      if (!sharded || file % hosts == host)
        job.write(host, "input/data/train/" + std::to_string(file), rows(file, 500));
  for (size_t host = 0; host < hosts; ++host)
    job.write(host, "input/data/validation/all", rows(9, 1000));
  const auto outcomes = job.run();
  for (const Outcome& each : outcomes) EXPECT_TRUE(each.done) << each.done.error().message;
  EXPECT_NE(job.model(), "");
  for (size_t host = 1; host < hosts; ++host) {
    EXPECT_TRUE(outcomes[host].metric_lines().empty());
    EXPECT_FALSE(fs::exists(job.base(host) + "/model/xgboost-model"));
  }
  EXPECT_EQ(outcomes[0].printed("channel train: 2000 rows on all hosts"), hosts > 1);
  const auto lines = outcomes[0].metric_lines();
  return lines.empty() ? "" : lines.back();
}

TEST(BoostingJob, SeveralHostsTrainTheModelOfOne) {
  const std::string alone = last_line(1, false);
  for (const auto& [hosts, sharded] :
       {std::pair(size_t{2}, true), std::pair(size_t{2}, false), std::pair(size_t{3}, true)}) {
    const std::string line = last_line(hosts, sharded);
    EXPECT_NEAR(metric_of(line, "validation-auc"), metric_of(alone, "validation-auc"), 1e-3)
        << hosts << " " << line;
    EXPECT_NEAR(metric_of(line, "train-logloss"), metric_of(alone, "train-logloss"), 5e-3);
  }
}

TEST(BoostingJob, SparseShardsMayLackTheLastColumns) {
  Hosts job(2, {{"objective", "reg:squarederror"}, {"tree_method", "hist"}});
  job.add_channel("train", "", true);
  std::string left, right;
  for (int i = 0; i < 50; ++i) {
    left += std::to_string(i % 5) + " 0:" + std::to_string(i % 5) + "\n";
    right += std::to_string(i % 5) + " 0:" + std::to_string(i % 5) + " 6:1\n";
  }
  job.write(0, "input/data/train/a", left);
  job.write(1, "input/data/train/b", right);
  const auto outcomes = job.run();
  expect_done(outcomes);
  EXPECT_TRUE(outcomes[0].printed("Train matrix has 50 rows and 7 columns"));
  EXPECT_LT(metric_of(outcomes[0].metric_lines().back(), "train-rmse"), 0.1);
}

TEST(BoostingJob, AResumedJobTrainsTheModelOfAnUninterruptedOne) {
  const auto& settings = kBinary;
  for (const size_t hosts : {size_t{1}, size_t{2}}) {
    const auto fill = [&](Hosts& job) {
      job.add_channel("train", kCsvType, true);
      for (size_t host = 0; host < hosts; ++host)
        job.write(host, "input/data/train/a", rows(host, 400));
      job.keep_checkpoints();
    };
    Hosts whole(hosts, settings), interrupted(hosts, settings);
    fill(whole);
    fill(interrupted);
    expect_done(whole.run());
    std::atomic<bool> stop = false;
    const auto first = interrupted.run(
        [&](std::string_view line) {
          if (line.starts_with("[7]")) stop = true;
        },
        &stop);
    expect_done(first);
    EXPECT_TRUE(first[0].printed("stopped after round "));
    EXPECT_LT(first[0].metric_lines().size(), 20u);
    EXPECT_NE(interrupted.model(), "") << "a stop saves the model";
    const auto names = os::list_directory(interrupted.base(0) + "/checkpoints");
    ASSERT_TRUE(names);
    EXPECT_EQ(names->size(), 5u);
    const auto second = interrupted.run();
    expect_done(second);
    EXPECT_TRUE(second[0].printed("Resuming from iteration "));
    EXPECT_EQ(first[0].metric_lines().size() + second[0].metric_lines().size(), 20u);
    EXPECT_TRUE(interrupted.model() == whole.model()) << hosts;
  }
}

TEST(BoostingJob, ADamagedCheckpointIsSkipped) {
  Hosts job(1, kBinary);
  job.add_channel("train", kCsvType);
  job.write(0, "input/data/train/a", rows(1, 300));
  job.keep_checkpoints();
  expect_done(job.run());
  const std::string model = job.model();
  job.write(0, "checkpoints/xgboost-checkpoint.19", "{\"cut");
  const auto again = job.run();
  expect_done(again);
  EXPECT_TRUE(again[0].printed("Wrong checkpoint model format"));
  EXPECT_TRUE(again[0].printed("Resuming from iteration 19"));
  EXPECT_TRUE(job.model() == model);
}

TEST(BoostingJob, TrainingContinuesFromAModel) {
  Hosts first(1, kBinary);
  first.add_channel("train", kCsvType);
  first.write(0, "input/data/train/a", rows(1, 500));
  const double before = metric_of(first.run()[0].metric_lines().back(), "train-logloss");
  for (const size_t hosts : {size_t{1}, size_t{2}}) {
    Hosts second(hosts, kBinary);
    second.add_channel("train", kCsvType);
    second.add_channel("model", "application/x-sagemaker-model");
    for (size_t host = 0; host < hosts; ++host) {
      second.write(host, "input/data/train/a", rows(1, 500));
      second.write(host, "input/data/model/xgboost-model", first.model());
    }
    const auto outcomes = second.run();
    expect_done(outcomes);
    EXPECT_TRUE(outcomes[0].printed("training continues from the model of the channel model"));
    EXPECT_LT(metric_of(outcomes[0].metric_lines()[0], "train-logloss"), before);
    auto model = load_stored_model(second.base(0) + "/model");
    ASSERT_TRUE(model);
    EXPECT_EQ(*model->boosters[0].rounds(), 40);
  }
}

TEST(BoostingJob, EarlyStoppingKeepsTheBestRound) {
  auto settings = kBinary;
  settings["num_round"] = "300";
  settings["early_stopping_rounds"] = "5";
  settings["eta"] = "1";
  settings["eval_metric"] = "auc,logloss";
  Hosts job(2, settings);
  job.add_channel("train", kCsvType);
  job.add_channel("validation", kCsvType);
  for (size_t host = 0; host < 2; ++host) {
    job.write(host, "input/data/train/a", rows(1, 200));
    job.write(host, "input/data/validation/a", rows(2, 200));
  }
  const auto outcomes = job.run();
  expect_done(outcomes);
  const auto lines = outcomes[0].metric_lines();
  ASSERT_LT(lines.size(), 300u);
  size_t best = 0;
  for (size_t i = 0; i < lines.size(); ++i)
    if (metric_of(lines[i], "validation-logloss") < metric_of(lines[best], "validation-logloss"))
      best = i;
  EXPECT_NEAR(double(best + 5), double(lines.size() - 1), 1);  // lines are rounded
  auto model = load_stored_model(job.base(0) + "/model");
  ASSERT_TRUE(model);
  EXPECT_EQ(*model->boosters[0].rounds(), int64_t(lines.size()) - 5);
}

TEST(BoostingJob, CrossValidationTrainsAModelForEachFold) {
  auto settings = kBinary;
  settings["_kfold"] = "3";
  settings["_num_cv_round"] = "2";
  settings["num_round"] = "5";
  for (const size_t hosts : {size_t{1}, size_t{2}}) {
    Hosts job(hosts, settings);
    job.add_channel("train", kCsvType);
    job.add_channel("validation", kCsvType);
    for (size_t host = 0; host < hosts; ++host) {
      job.write(host, "input/data/train/a", rows(1, 300));
      job.write(host, "input/data/validation/a", rows(2, 100));
    }
    const auto outcomes = job.run();
    expect_done(outcomes);
    EXPECT_TRUE(outcomes[0].printed("The metrics of round 2 cross validation"));
    EXPECT_TRUE(outcomes[0].printed("The overall metrics of 2-round cross validation"));
    const auto lines = outcomes[0].metric_lines();
    ASSERT_EQ(lines.size(), 6u * 5 + 3);
    EXPECT_TRUE(lines.back().starts_with("[5]#011train-logloss:"));
    EXPECT_GT(metric_of(lines.back(), "validation-auc"), 0.85);
    auto model = load_stored_model(job.base(0) + "/model");
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(model->boosters.size(), 6u);
    const auto reply = predict(*model, "9,1\n", {});
    ASSERT_TRUE(reply);
    EXPECT_GT(*parse_double(trim(*reply)), 0.5);
  }
}

TEST(BoostingJob, EveryObjectiveTrainsOnTwoHosts) {
  for (const std::string objective :
       {"binary:logistic", "binary:logitraw", "binary:hinge", "count:poisson", "multi:softmax",
        "multi:softprob", "rank:pairwise", "rank:ndcg", "rank:map", "reg:linear",
        "reg:squarederror", "reg:logistic", "reg:gamma", "reg:pseudohubererror",
        "reg:squaredlogerror", "reg:absoluteerror", "reg:tweedie", "survival:aft",
        "survival:cox"}) {
    const size_t hosts = objective == "survival:cox" ? 1 : 2;
    std::map<std::string, std::string> settings = {
        {"objective", objective}, {"num_round", "3"}, {"tree_method", "hist"}};
    if (objective.starts_with("multi:")) settings["num_class"] = "2";
    Hosts job(hosts, settings);
    const bool ranks = objective.starts_with("rank:");
    const bool positive = objective == "reg:gamma" || objective.starts_with("survival:");
    job.add_channel("train", ranks ? "" : kCsvType);
    std::string text;
    for (int i = 0; i < 60; ++i) {
      const std::string label = std::to_string(i % 2 + (positive ? 1 : 0));
      text += ranks ? label + " qid:" + std::to_string(i / 6) + " 0:" + std::to_string(i % 4) + "\n"
                    : label + "," + std::to_string(i % 4) + "\n";
    }
    for (size_t host = 0; host < hosts; ++host) job.write(host, "input/data/train/a", text);
    const auto outcomes = job.run();
    for (const Outcome& each : outcomes)
      EXPECT_TRUE(each.done) << objective << ": " << each.done.error().message;
    EXPECT_EQ(outcomes[0].metric_lines().size(), 3u) << objective;
  }
}

TEST(BoostingJob, LinearAndDartBoostersTrain) {
  for (const std::string booster : {"gblinear", "dart"}) {
    Hosts job(1, {{"booster", booster}, {"num_round", "5"}, {"early_stopping_rounds", "3"}});
    job.add_channel("train", kCsvType);
    job.write(0, "input/data/train/a", rows(1, 200));
    const auto outcomes = job.run();
    expect_done(outcomes);
    EXPECT_LT(metric_of(outcomes[0].metric_lines().back(), "train-rmse"), 0.5) << booster;
    EXPECT_NE(job.model(), "");
  }
}

TEST(BoostingJob, SageMakersOwnMetricsArePrinted) {
  auto settings = kBinary;
  settings["eval_metric"] = "accuracy,f1,error";
  Hosts job(2, settings);
  job.add_channel("train", kCsvType);
  for (size_t host = 0; host < 2; ++host) job.write(host, "input/data/train/a", rows(1, 300));
  const auto outcomes = job.run();
  expect_done(outcomes);
  for (const auto& line : outcomes[0].metric_lines())
    EXPECT_NEAR(metric_of(line, "train-accuracy"), 1 - metric_of(line, "train-error"), 2e-5)
        << line;
  EXPECT_GT(metric_of(outcomes[0].metric_lines().back(), "train-f1"), 0.9);
}

TEST(BoostingJob, PipesAndWeights) {
  auto settings = kBinary;
  settings["csv_weights"] = "1";
  Hosts job(1, settings);
  job.add_channel("train", kCsvType, false, "Pipe");
  const std::string fifo = job.base(0) + "/input/data/train_0";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::string weighted;
  for (int i = 0; i < 100; ++i)
    weighted += (i % 2 ? "1,2,5," : "0,1,4,") + std::to_string(i) + "\n";
  std::thread writer([&] { std::ofstream(fifo, std::ios::binary) << weighted; });
  const auto outcomes = job.run();
  writer.join();
  expect_done(outcomes);
  EXPECT_TRUE(outcomes[0].printed("Train matrix has 100 rows and 2 columns"));
  Hosts sparse(1, kBinary);
  sparse.add_channel("train", "text/libsvm", false, "Pipe");
  EXPECT_EQ(sparse.run()[0].failure,
            "Customer Error: channel train: Pipe mode not supported for LibSVM.");
}

struct WrongJob {
  std::map<std::string, std::string> settings;
  std::string type, content;
  const char* failure;
};

const WrongJob kWrongJobs[] = {
    {{{"rounds", "3"}},
     kCsvType,
     "1,2\n",
     "Customer Error: Extraneous hyperparameter found: rounds"},
    {{{"eta", "7"}}, kCsvType, "1,2\n", "Customer Error: Hyperparameter eta: 7.0 is not in [0, 1]"},
    {{},
     kCsvType,
     "1,2,3\n1,2\n",
     "Customer Error: channel train: rows: line 2: the row has 2 columns, but those before have "
     "3"},
    {{},
     kCsvType,
     "1,2\n1,x\n",
     "Customer Error: channel train: rows: line 2: column 2: 'x' is not "
     "a number"},
    {{}, kCsvType, "nan,2\n", "Customer Error: channel train: rows: line 1: the label is NaN"},
    {{{"objective", "multi:softmax"}, {"num_class", "2"}},
     kCsvType,
     "1,2\n2,2\n",
     "Customer Error: channel train: rows: line 2: the label 2 is out of range: label must be in "
     "[0, num_class): num_class is 2"},
    {{}, kCsvType, "", "Customer Error: channel train: host "},
    {{}, "image/png", "", "Customer Error: channel train: image/png is not an accepted"},
    {{{"base_score", "7"}, {"objective", "binary:logistic"}},
     kCsvType,
     "1,2\n0,3\n",
     "Customer Error: Check failed: base_score > 0.0f && base_score < 1.0f"},
    {{{"updater", "grow_skmaker"}},
     kCsvType,
     "1,2\n0,3\n",
     "XGB train call failed with exception: Unknown tree updater grow_skmaker"},
};

TEST(BoostingJob, ReportsInvalidInputAsTheFailure) {
  for (const WrongJob& each : kWrongJobs) {
    Hosts job(1, each.settings);
    job.add_channel("train", each.type);
    job.write(0, "input/data/train/rows", each.content);
    const auto outcomes = job.run();
    EXPECT_FALSE(outcomes[0].done);
    EXPECT_EQ(outcomes[0].failure.find(each.failure), 0u) << outcomes[0].failure;
    EXPECT_EQ(job.model(), "");
  }
}

TEST(BoostingJob, ReportsInvalidChannelsAndTooLittleMemoryAsTheFailure) {
  Hosts memory(1), none(1), other(1), broken(1);
  memory.add_channel("train", kCsvType);
  memory.write(0, "input/data/train/rows", rows(1, 3000));
  EXPECT_NE(memory.run({}, nullptr, 50'000)[0].failure.find("needs about"), std::string::npos);
  none.add_channel("validation", kCsvType);
  EXPECT_EQ(none.run()[0].failure, "Customer Error: Missing required channel: train");
  other.add_channel("train", kCsvType);
  other.add_channel("test", kCsvType);
  EXPECT_EQ(other.run()[0].failure, "Customer Error: Extraneous channel found: test");
  broken.add_channel("train", kCsvType);
  broken.add_channel("model", "");
  broken.write(0, "input/data/train/rows", "1,2\n0,3\n");
  broken.write(0, "input/data/model/xgboost-model", "no model");
  EXPECT_EQ(broken.run()[0].failure.find("Customer Error: channel model: xgboost-model: not an "
                                         "XGBoost model"),
            0u);
}

TEST(BoostingJob, RejectsSettingsThatNeedASingleHost) {
  const std::pair<std::map<std::string, std::string>, const char*> some[] = {
      {{{"objective", "survival:cox"}},
       "Customer Error: Hyperparameter objective: survival:cox trains on one host only"},
      {{{"tree_method", "exact"}},
       "Customer Error: Hyperparameter tree_method: exact trains on one host only: use hist or "
       "approx"}};
  for (const auto& [settings, failure] : some) {
    Hosts job(2, settings);
    job.add_channel("train", kCsvType);
    for (const Outcome& each : job.run()) EXPECT_EQ(each.failure, failure);
  }
}

TEST(BoostingJob, AHostWithoutDataEndsTheJobOfAllHosts) {
  Hosts job(3, kBinary);
  job.add_channel("train", kCsvType, true);
  job.write(0, "input/data/train/a", rows(1, 30));
  job.write(2, "input/data/train/b", rows(2, 30));
  for (const Outcome& each : job.run()) {
    EXPECT_FALSE(each.done);
    EXPECT_NE(each.failure.find("channel train: host " + job.name(1) + " has no data"),
              std::string::npos)
        << each.failure;
  }
}

TEST(BoostingJob, AnInvalidRowOnOneHostIsTheFailureOnAllHosts) {
  Hosts job(2, kBinary);
  job.add_channel("train", kCsvType, true);
  job.write(0, "input/data/train/a", rows(1, 30));
  job.write(1, "input/data/train/b", "1,2,3\n1,2,x\n");
  for (const Outcome& each : job.run()) {
    EXPECT_FALSE(each.done);
    EXPECT_NE(each.failure.find("b: line 2: column 3: 'x' is not a number"), std::string::npos)
        << each.failure;
  }
}

TEST(BoostingJob, AStopBeforeTrainingIsNotAFailure) {
  Hosts job(2, kBinary);
  job.add_channel("train", kCsvType);
  std::atomic<bool> stop = true;
  for (const Outcome& each : job.run({}, &stop)) {
    EXPECT_TRUE(each.done);
    EXPECT_TRUE(each.printed("stopped before the first round"));
  }
}

}  // namespace
}  // namespace trainyard::boosting
