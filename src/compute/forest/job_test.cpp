// Runs jobs with one host and with several, whose threads share this process. Tests models, metrics
// and rejected input.
#include "forest/job.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/bytes/record_io.hpp"
#include "base/json.hpp"
#include "base/random.hpp"
#include "channels/tensor_record.hpp"
#include "collectives/testing/groups.hpp"
#include "forest/model_file.hpp"
#include "forest/sample.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::forest {
namespace {

using collectives::Group;
namespace fs = std::filesystem;

// -- samples

std::vector<std::vector<float>> random_rows(size_t count) {
  SeededRandom random(11);
  std::vector<std::vector<float>> rows(count, std::vector<float>(3));
  for (auto& row : rows)
    for (float& value : row) value = float(random.below(50));
  return rows;
}

const ForestOptions kOptions = {.dimensions = 3, .trees = 9, .samples_per_tree = 20, .seed = 1};

// Builds the model of rows that owner() distributes over ranks.
std::string model_of(int ranks, const std::vector<std::vector<float>>& rows,
                     const std::function<int(size_t)>& owner) {
  std::string model;
  collectives::testing::run_ranks_in_memory(ranks, [&](Group& group) {
    Sampler sampler(kOptions);
    for (size_t i = rows.size(); i-- > 0;)
      if (owner(i) == group.rank())
        collectives::testing::expect_ok(sampler.offer({i / 100, i % 100}, rows[i]));
    auto sample = gather_sample(sampler, group);
    ASSERT_TRUE(sample) << sample.error().message;
    ASSERT_EQ(sample->has_value(), group.rank() == 0);
    if (group.rank() != 0) return;
    GatheredSample& all = **sample;
    EXPECT_EQ(all.rows, rows.size());
    model = encode_forest(
        Forest::from_sample(kOptions, all.points, std::move(all.trees), all.rows, size_t(ranks)));
  });
  return model;
}

TEST(Sample, DoesNotDependOnTheHostsOfRows) {
  for (const size_t count : {1u, 15u, 20u, 21u, 700u}) {
    const auto rows = random_rows(count);
    const std::string alone = model_of(1, rows, [](size_t) { return 0; });
    ASSERT_FALSE(alone.empty());
    EXPECT_EQ(model_of(3, rows, [](size_t i) { return int(i % 3); }), alone);
    EXPECT_EQ(model_of(3, rows, [](size_t i) { return i < 600 ? 2 : 0; }), alone);
    EXPECT_EQ(model_of(5, rows, [](size_t i) { return int(mix(i) % 5); }), alone);
  }
}

TEST(Sample, RejectsASampleLargerThanTheMemory) {
  Sampler sampler({.dimensions = 1000, .trees = 100, .samples_per_tree = 256}, 4 << 20);
  const std::vector<float> row(1000, 1);
  Result<void> offered = ok();
  for (uint64_t i = 0; i < 100 && offered; ++i) offered = sampler.offer({0, i}, row);
  ASSERT_FALSE(offered);
  EXPECT_EQ(offered.error().message,
            "num_trees 100, num_samples_per_tree 256 and feature_dim 1000 need more memory than "
            "the 4.0 MiB of this host");
}

// -- jobs

struct Outcome {
  Result<void> done = ok();
  std::vector<std::string> lines;
  std::string failure, model;

  bool printed(std::string_view text) const {
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
};

// Hosts makes the files of the hosts of one job, and runs them.
class Hosts {
 public:
  explicit Hosts(size_t count) {
    for (const auto& endpoint : collectives::testing::endpoints(int(count)))
      names_.push_back(endpoint.host);
    for (size_t host = 0; host < count; ++host) {
      fs::create_directories(base(host) + "/input/config");
      fs::create_directories(base(host) + "/model");
      write(host, "input/config/resourceconfig.json",
            dump(Json{{"current_host", names_[host]},
                      {"hosts", names_},
                      {"network_interface_name", "lo"}}));
      write(host, "input/config/hyperparameters.json", dump(hyperparameters));
    }
  }

  void set(const std::string& name, const std::string& value) {
    hyperparameters[name] = value;
    for (size_t host = 0; host < names_.size(); ++host)
      write(host, "input/config/hyperparameters.json", dump(hyperparameters));
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
  std::string base(size_t host) const { return folder_.path() + "/" + std::to_string(host); }

  std::vector<Outcome> run(const std::atomic<bool>& stop) {
    std::vector<Outcome> outcomes(names_.size());
    std::vector<std::thread> threads;
    for (size_t host = 0; host < names_.size(); ++host)
      threads.emplace_back([&, host] {
        os::MachineClock clock;
        Outcome& outcome = outcomes[host];
        outcome.done =
            run_forest_job({.base = base(host), .shared_value = "forest_test"}, clock, stop,
                           [&](std::string_view line) { outcome.lines.emplace_back(line); });
        if (auto text = os::read_file(base(host) + "/output/failure")) outcome.failure = *text;
        if (auto bytes = os::read_file(base(host) + "/model/" + std::string(kForestFile)))
          outcome.model = *bytes;
      });
    for (auto& thread : threads) thread.join();
    return outcomes;
  }
  std::vector<Outcome> run() {
    const std::atomic<bool> stop = false;
    return run(stop);
  }

  Json hyperparameters = {
      {"feature_dim", "2"}, {"num_trees", "50"}, {"num_samples_per_tree", "64"}};

 private:
  os::TemporaryDirectory folder_;
  std::vector<std::string> names_;
  Json channels_ = Json::object();
};

// Returns rows around (50, 20) as csv; every 40th row is an outlier, with the label 1.
std::string shard(uint64_t seed, int rows, bool has_labels) {
  SeededRandom random(seed);
  std::string text;
  for (int i = 0; i < rows; ++i) {
    const bool is_outlier = has_labels && i % 40 == 7;
    if (has_labels) text += is_outlier ? "1," : "0,";
    text += std::to_string(40 + random.below(20) + (is_outlier ? 300 : 0)) + "," +
            std::to_string(10 + random.below(20)) + "." + std::to_string(random.below(1000)) + "\n";
  }
  return text;
}

constexpr const char* kPlain = "text/csv;label_size=0";
constexpr const char* kLabelled = "text/csv;label_size=1";

TEST(ForestJob, HostsWriteTheModelOfOneHost) {
  const std::vector<std::string> shards = {shard(1, 150, false), shard(2, 90, false),
                                           shard(3, 200, false), shard(4, 10, false)};
  const auto model = [&](size_t hosts, bool sharded) {
    Hosts job(hosts);
    job.add_channel("train", kPlain, sharded);
    for (size_t i = 0; i < shards.size(); ++i)
      for (size_t host = 0; host < hosts; ++host)
        if (!sharded || i % hosts == host)
          job.write(host, "input/data/train/part-" + std::to_string(i) + ".csv", shards[i]);
    const auto outcomes = job.run();
    for (const Outcome& each : outcomes) EXPECT_TRUE(each.done) << each.done.error().message;
    EXPECT_TRUE(outcomes[0].printed("channel train: 450 rows on all hosts"));
    for (size_t host = 1; host < hosts; ++host) EXPECT_EQ(outcomes[host].model, "");
    return outcomes[0].model;
  };
  const std::string alone = model(1, true);
  ASSERT_FALSE(alone.empty());
  EXPECT_EQ(model(3, true), alone);
  EXPECT_EQ(model(3, false), alone);  // divided by files
  EXPECT_EQ(model(5, false), alone);  // divided by rows
  EXPECT_EQ(model(1, false), alone);
}

TEST(ForestJob, PrintsMetricsOfATestChannel) {
  Hosts job(2);
  job.add_channel("train", kPlain, true);
  job.add_channel("test", kLabelled);
  for (size_t host = 0; host < 2; ++host) {
    job.write(host, "input/data/train/" + std::to_string(host), shard(host, 400, false));
    job.write(host, "input/data/test/test.csv", shard(9, 400, true));
  }
  const auto outcomes = job.run();
  ASSERT_TRUE(outcomes[0].done) << outcomes[0].done.error().message;
  const std::string prefix = "#quality_metric: host=" + std::string("127.");
  for (const char* each : {"accuracy", "precision", "recall", "f1", "negative_f1"})
    EXPECT_TRUE(outcomes[0].printed(std::string(", test ") + each + " <score>=1.000000")) << each;
  EXPECT_TRUE(outcomes[0].printed(prefix));
  EXPECT_TRUE(outcomes[0].printed("completed 100 %"));
  EXPECT_FALSE(outcomes[1].printed("#quality_metric"));
}

TEST(ForestJob, PrintsTheMetricsThatTheHyperparameterNames) {
  Hosts job(1);
  job.set("eval_metrics", "[\"accuracy\"]");
  job.add_channel("train", kPlain);
  job.add_channel("test", kLabelled);
  job.write(0, "input/data/train/a", shard(1, 100, false));
  job.write(0, "input/data/test/b", shard(1, 100, true));
  const auto outcomes = job.run();
  EXPECT_TRUE(outcomes[0].printed("test accuracy"));
  EXPECT_FALSE(outcomes[0].printed("test f1"));
}

std::string records(const std::string& csv) {
  std::string bytes;
  for (size_t at = 0; at < csv.size(); at = csv.find('\n', at) + 1) {
    const float first = std::stof(csv.substr(at));
    const float second = std::stof(csv.substr(csv.find(',', at) + 1));
    const std::string message = channels::encode_record({{first, second}, 0.0});
    const auto head = record_head(message.size());
    bytes += std::string(head.data(), head.size()) + message +
             std::string(record_padding(message.size()), '\0');
  }
  return bytes;
}

TEST(ForestJob, RecordsInFilesAndPipesGiveTheScoresOfCsv) {
  const std::string csv = shard(1, 120, false);
  Hosts from_csv(1), from_records(1), from_pipe(1), pipe_again(1);
  from_csv.add_channel("train", kPlain);
  from_csv.write(0, "input/data/train/rows", csv);
  from_records.add_channel("train", "");
  from_records.write(0, "input/data/train/rows", records(csv));
  const std::string model = from_csv.run()[0].model;
  ASSERT_FALSE(model.empty());
  EXPECT_EQ(from_records.run()[0].model, model);

  std::vector<std::string> models;
  for (Hosts* job : {&from_pipe, &pipe_again}) {
    job->add_channel("train", "application/x-recordio-protobuf", false, "Pipe");
    const std::string fifo = job->base(0) + "/input/data/train_0";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    std::thread writer([&] { std::ofstream(fifo, std::ios::binary) << records(csv); });
    const auto outcomes = job->run();
    writer.join();
    ASSERT_TRUE(outcomes[0].done) << outcomes[0].done.error().message;
    EXPECT_TRUE(outcomes[0].printed("120 rows read by host"));
    models.push_back(outcomes[0].model);
  }
  EXPECT_EQ(models[0], models[1]);
}

TEST(ForestJob, SavesTheModelOfTheRowsSoFarWhenItIsStopped) {
  Hosts job(2);
  job.add_channel("train", kPlain, true, "Pipe");
  std::vector<std::thread> writers;
  std::vector<int> ends;
  for (size_t host = 0; host < 2; ++host) {
    const std::string fifo = job.base(host) + "/input/data/train_0";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    // Opens both ends, so the pipe never ends by itself.
    ends.push_back(::open(fifo.c_str(), O_RDWR | O_CLOEXEC));
    const std::string rows = shard(host, 200, false);
    ASSERT_EQ(::write(ends.back(), rows.data(), rows.size()), ssize_t(rows.size()));
  }
  std::atomic<bool> stop = false;
  std::thread stopper([&] {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    for (const int end : ends) {  // until the rows were read
      int waiting = 1;
      while (waiting > 0 && std::chrono::steady_clock::now() < deadline) {
        EXPECT_EQ(::ioctl(end, FIONREAD, &waiting), 0);
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_EQ(waiting, 0);
    }
    stop = true;
  });
  const auto outcomes = job.run(stop);
  stopper.join();
  for (const int end : ends) ::close(end);
  for (const Outcome& each : outcomes) ASSERT_TRUE(each.done) << each.done.error().message;
  EXPECT_TRUE(outcomes[0].printed("until it was stopped"));
  const auto model = decode_forest(outcomes[0].model);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_GT(model->rows_seen(), 0u);
  EXPECT_LE(model->rows_seen(), 400u);
}

struct WrongJob {
  const char* type;
  std::string content;
  const char* message;
};

TEST(ForestJob, ReportsInvalidRowsAsTheFailure) {
  const std::string whole = records(shard(1, 2, false));
  const WrongJob wrong[] = {
      {kPlain, "1,2\n3\n", "channel train: rows: line 2: the row has 1 columns, but feature_dim 2"},
      {kPlain, "1,nan\n", "channel train: rows: line 1: column 2: 'nan' is not a finite number"},
      {kPlain, "1,2,3\n", "channel train: rows: line 1: the row has 3 columns, but feature_dim 2"},
      {kPlain, "", "has no rows: the channel needs at least one object with rows for each host"},
      {"", whole.substr(0, whole.size() - 9),
       "channel train: rows: after record 1: the bytes end within a record"},
      {"application/json", "{}",
       "channel train: 'application/json' is not one of ['text/csv', "
       "'application/x-recordio-protobuf']"},
  };
  for (const WrongJob& each : wrong) {
    Hosts job(1);
    job.add_channel("train", each.type);
    job.write(0, "input/data/train/rows", each.content);
    const auto outcomes = job.run();
    EXPECT_FALSE(outcomes[0].done);
    EXPECT_NE(outcomes[0].failure.find(each.message), std::string::npos) << outcomes[0].failure;
    EXPECT_EQ(outcomes[0].model, "");
  }
}

TEST(ForestJob, ReportsInvalidChannelsAsTheFailure) {
  Hosts none(1), unknown(1), unlabelled(1), range(1), empty(1);
  none.add_channel("test", kLabelled);
  EXPECT_EQ(none.run()[0].failure, "'train' is a required property");
  unknown.add_channel("train", kPlain);
  unknown.add_channel("validation", kPlain);
  EXPECT_EQ(unknown.run()[0].failure.find("Additional properties are not allowed ('validation' "),
            0u);
  for (Hosts* job : {&unlabelled, &range, &empty}) {
    job->add_channel("train", kPlain);
    job->write(0, "input/data/train/a", "1,2\n3,4\n");
  }
  unlabelled.add_channel("test", kPlain);
  EXPECT_EQ(unlabelled.run()[0].failure.find("channel test: rows need labels"), 0u);
  range.add_channel("test", kLabelled);
  range.write(0, "input/data/test/a", "0,1,2\n2,3,4\n");
  EXPECT_EQ(range.run()[0].failure,
            "channel test: a: line 2: the label 2.000000 is out of range: 1 is an anomaly, 0 a "
            "normal row");
  empty.add_channel("test", kLabelled);
  EXPECT_EQ(empty.run()[0].failure, "channel test: the channel has no rows");
}

TEST(ForestJob, ReportsEmptyFilesOnAllHostsAsTheFailure) {
  Hosts job(2);
  job.add_channel("train", kPlain);
  for (size_t host = 0; host < 2; ++host)
    for (const char* name : {"a", "b"})
      job.write(host, std::string("input/data/train/") + name, "");
  EXPECT_EQ(job.run()[0].failure, "channel train: the channel has no rows");
}

TEST(ForestJob, AHostWithoutDataEndsTheJobOfAllHosts) {
  Hosts job(3);
  job.add_channel("train", kPlain, true);
  job.write(0, "input/data/train/a", shard(1, 10, false));
  job.write(2, "input/data/train/b", shard(2, 10, false));
  for (const Outcome& each : job.run()) {
    EXPECT_FALSE(each.done);
    EXPECT_NE(each.failure.find("has no rows"), std::string::npos) << each.failure;
    EXPECT_EQ(each.model, "");
  }
}

}  // namespace
}  // namespace trainyard::forest
