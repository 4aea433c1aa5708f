// Tests training on several hosts: in memory, over loopback under the job contract, and with the
// real digits if they are prepared.
#include "train/trainer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "base/json.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"
#include "train/evaluate.hpp"
#include "train/job.hpp"

namespace trainyard::train {
namespace {

// Returns random points; the points of each class are around a centre.
Table points(size_t rows, uint64_t seed) {
  SeededRandom random(seed);
  Table table;
  table.columns = 4;
  for (size_t i = 0; i < rows; ++i) {
    const auto label = int32_t(random.below(3));
    for (size_t column = 0; column < table.columns; ++column) {
      const float centre = column == size_t(label) ? 12.0f : 2.0f;
      table.features.push_back(centre + float(random.below(4000)) / 1000.0f);
    }
    table.labels.push_back(label);
  }
  return table;
}

// Returns shards of uneven sizes, one of them empty.
std::vector<Shard> shards() {
  std::vector<Shard> all;
  for (const size_t rows : {40, 1, 0, 77, 13}) {
    const std::string name = "part-" + std::to_string(all.size()) + ".csv";
    all.push_back({name, points(rows, 100 + all.size())});
  }
  return all;
}

struct Trained {
  Model model;
  std::vector<std::string> lines;
  bool finished = false;
  int64_t steps = 0;
};

// The shards of each host.
using Hosts = std::vector<std::vector<Shard>>;

Trained learn(const Hosts& hosts, const Settings& settings, int stopping_rank = -1) {
  auto groups = collectives::join_in_memory(int(hosts.size()));
  std::vector<Trained> learned(hosts.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    threads.emplace_back([&, rank] {
      os::MachineClock clock;
      auto rows = Rows::agree(hosts[rank], *groups[rank]);
      ASSERT_TRUE(rows) << rows.error().message;
      auto trainer = Trainer::make(
          settings, *std::move(rows), *groups[rank], clock,
          [&, rank](std::string_view line) { learned[rank].lines.emplace_back(line); });
      ASSERT_TRUE(trainer) << trainer.error().message;
      const std::atomic<bool> stop = int(rank) == stopping_rank;
      const auto finished = trainer->run(stop);
      ASSERT_TRUE(finished) << finished.error().message;
      learned[rank].finished = *finished;
      learned[rank].model = trainer->model();
      learned[rank].steps = trainer->steps_done();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Trained& each : learned) {
    EXPECT_EQ(each.model.parameters, learned[0].model.parameters);
    EXPECT_EQ(each.steps, learned[0].steps);
  }
  return learned[0];
}

Settings quick() {
  Settings settings;
  settings.epochs = 5;
  settings.batch_size = 16;
  settings.hidden = 8;
  return settings;
}

// Distributes shards like ShardedByS3Key.
Hosts distributed(const std::vector<Shard>& all, size_t hosts) {
  Hosts distributed(hosts);
  for (size_t i = 0; i < all.size(); ++i) distributed[i % hosts].push_back(all[i]);
  return distributed;
}

TEST(Trainer, LearnsTheTrainingRows) {
  const Trained learned = learn(distributed(shards(), 1), quick());
  EXPECT_TRUE(learned.finished);
  const auto evaluation = evaluate(learned.model, points(300, 999));
  EXPECT_GT(evaluation->accuracy(), 0.95);
}

TEST(Trainer, AnyNumberOfHostsTrainsTheSameModelBitForBit) {
  const auto all = shards();
  for (const char* what : {"sgd", "adam", "moved"}) {
    Settings settings = quick();
    if (what == std::string("adam")) settings.optimizer.method = Method::adam;
    if (what == std::string("moved"))
      settings.image_width = 2, settings.shift = 0.5f, settings.rotate = 20;
    const auto alone = learn(distributed(all, 1), settings).model.parameters;
    for (const size_t hosts : {2, 3, 5, 8}) {  // with eight hosts, some have no shard
      EXPECT_EQ(learn(distributed(all, hosts), settings).model.parameters, alone)
          << what << " on " << hosts << " hosts";
    }
    // FullyReplicated: every host holds all shards.
    EXPECT_EQ(learn({all, all, all}, settings).model.parameters, alone) << what;
  }
}

TEST(Trainer, DifferentSeedsTrainDifferentModels) {
  Settings settings = quick();
  const auto one = learn(distributed(shards(), 1), settings).model.parameters;
  settings.seed = 2;
  EXPECT_NE(learn(distributed(shards(), 1), settings).model.parameters, one);
}

TEST(Trainer, PrintsMetricsInLinesThatARegexMatches) {
  const auto lines = learn(distributed(shards(), 2), quick()).lines;
  ASSERT_EQ(lines.size(), 7u);  // the begin, five epochs, the end
  EXPECT_EQ(lines[1].substr(0, 27), "epoch=1 step=9 train_loss=0") << lines[1];
  EXPECT_NE(lines[5].find("epoch=5 step=45 train_loss="), std::string::npos) << lines[5];
  EXPECT_NE(lines[5].find(" train_accuracy="), std::string::npos);
  EXPECT_NE(lines[5].find(" images_per_second="), std::string::npos);
  EXPECT_NE(lines[6].find("the same on all ranks"), std::string::npos) << lines[6];
}

TEST(Trainer, StopsAllRanksAfterTheSameStepWhenOneIsStopped) {
  const Trained learned = learn(distributed(shards(), 3), quick(), 1);
  EXPECT_FALSE(learned.finished);
  EXPECT_EQ(learned.steps, 1);
}

TEST(Trainer, RejectsDataThatDoesNotFitTheSettings) {
  os::MachineClock clock;
  const auto make = [&](const std::vector<Shard>& shards, const Settings& settings) {
    auto groups = collectives::join_in_memory(1);
    auto rows = Rows::agree(shards, *groups[0]);
    if (!rows) return rows.error().message;
    const auto trainer =
        Trainer::make(settings, *std::move(rows), *groups[0], clock, [](std::string_view) {});
    return trainer ? std::string() : trainer.error().message;
  };
  EXPECT_NE(make({}, {}).find("no rows"), std::string::npos);
  Settings two_classes;
  two_classes.classes = 2;
  EXPECT_NE(make(shards(), two_classes).find("label 2"), std::string::npos);
  Settings wide;
  wide.image_width = 3;
  EXPECT_NE(make(shards(), wide).find("images of 3"), std::string::npos);
  auto uneven = shards();
  uneven.push_back({"wider.csv", *parse_csv("1,2,3\n")});
  EXPECT_NE(make(uneven, {}).find("wider.csv"), std::string::npos);
}

TEST(Trainer, DrawsBatchesFromSeedAndEpoch) {
  EXPECT_EQ(shuffled_rows(100, 1, 1), shuffled_rows(100, 1, 1));
  EXPECT_NE(shuffled_rows(100, 1, 1), shuffled_rows(100, 1, 2));
  EXPECT_NE(shuffled_rows(100, 1, 1), shuffled_rows(100, 2, 1));
  auto order = shuffled_rows(1000, 3, 4);
  std::sort(order.begin(), order.end());
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
}

// -- under the job contract, over TCP -------------------------------------------------------------

// Hosts of one job, each with an /opt/ml of its own, at loopback addresses that no other process
// uses.
class Job {
 public:
  Job(int hosts, std::map<std::string, std::string> hyperparameters) {
    static int jobs = 0;
    const auto process = unsigned(getpid());
    hyperparameters["port"] = std::to_string(7900 + jobs++);
    Json names = Json::array();
    for (int k = 1; k <= hosts; ++k) {
      names.push_back("127." + std::to_string(1 + process / 250 % 250) + "." +
                      std::to_string(1 + process % 250) + "." + std::to_string(k));
    }
    for (int k = 0; k < hosts; ++k) {
      EXPECT_TRUE(os::make_directories(base(k) + "/input/config"));
      const Json resources = {
          {"current_host", names[size_t(k)]}, {"hosts", names}, {"network_interface_name", "lo"}};
      EXPECT_TRUE(os::write_file(base(k) + "/input/config/resourceconfig.json", resources.dump()));
      EXPECT_TRUE(os::write_file(base(k) + "/input/config/hyperparameters.json",
                                 Json(hyperparameters).dump()));
    }
    results_.resize(size_t(hosts), ok());
  }

  std::string base(int host) const { return folder_.path() + "/algo-" + std::to_string(host + 1); }
  void put(int host, const std::string& name, const std::string& text) {
    EXPECT_TRUE(os::make_directories(base(host) + "/input/data/train"));
    EXPECT_TRUE(os::write_file(base(host) + "/input/data/train/" + name, text));
  }

  void run() {
    std::vector<std::thread> threads;
    for (size_t host = 0; host < results_.size(); ++host) {
      threads.emplace_back([this, host] {
        os::MachineClock clock;
        results_[host] =
            run_job({base(int(host)), "a job"}, clock, stop, [this](std::string_view line) {
              const MutexLock lock(mutex_);
              if (on_line) on_line(line);
            });
      });
    }
    for (auto& thread : threads) thread.join();
  }
  const Result<void>& result(int host) const { return results_[size_t(host)]; }
  std::string failure(int host) const {
    const auto text = os::read_file(base(host) + "/output/failure");
    return text ? *text : "";
  }

  std::atomic<bool> stop = false;
  std::function<void(std::string_view)> on_line;

 private:
  os::TemporaryDirectory folder_;
  Mutex mutex_;
  std::vector<Result<void>> results_;
};

std::string csv(const Table& table) {
  std::string text;
  for (size_t row = 0; row < table.rows(); ++row) {
    for (const float value : table.row(row)) text += std::to_string(value) + ",";
    text += std::to_string(table.labels[row]) + "\n";
  }
  return text;
}

TEST(Job, TwoHostsTrainAndTheFirstSavesTheModel) {
  Job job(2, {{"epochs", "3"}, {"hidden", "8"}});
  job.put(0, "a.csv", csv(points(30, 1)));
  job.put(1, "deeper.csv", csv(points(50, 2)));
  job.run();
  for (int host = 0; host < 2; ++host) {
    EXPECT_TRUE(job.result(host)) << job.result(host).error().message;
    EXPECT_EQ(job.failure(host), "");
  }
  EXPECT_TRUE(load_model(job.base(0) + "/model"));
  EXPECT_FALSE(os::exists(job.base(1) + "/model"));
}

TEST(Job, FourHostsInTwoRegionsSaveOneModel) {
  Job job(4, {{"epochs", "20"}, {"hidden", "8"}, {"regions", "2"}, {"region_steps", "4"}});
  for (int host = 0; host < 4; ++host) job.put(host, "a.csv", csv(points(30, uint64_t(host))));
  std::vector<std::string> lines;
  job.on_line = [&](std::string_view line) { lines.emplace_back(line); };
  job.run();
  for (int host = 0; host < 4; ++host) {
    EXPECT_TRUE(job.result(host)) << job.result(host).error().message;
    EXPECT_EQ(os::exists(job.base(host) + "/model"), host == 0);
  }
  EXPECT_TRUE(load_model(job.base(0) + "/model"));
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) {
                            return line.starts_with("round=1 regions=2 region_bytes_sent=");
                          }),
            2);
}

TEST(Job, RejectsHostsThatCannotBeSplitEvenly) {
  Job job(3, {{"regions", "2"}});
  job.run();
  EXPECT_NE(job.failure(1).find("3 hosts cannot be split into 2"), std::string::npos)
      << job.failure(1);
}

TEST(Job, ReportsAnErrorOfOneHostOnAllHosts) {
  Job job(2, {});
  job.put(0, "a.csv", csv(points(30, 1)));
  job.put(1, "b.csv", "1,2,3,4,not a label\n");
  job.run();
  for (int host = 0; host < 2; ++host) {
    EXPECT_FALSE(job.result(host));
    EXPECT_NE(job.failure(host).find("not a label"), std::string::npos) << job.failure(host);
    EXPECT_NE(job.failure(host).find("b.csv"), std::string::npos) << job.failure(host);
  }
}

TEST(Job, WritesAnUnknownHyperparameterToTheFailureFile) {
  Job job(1, {{"epoch", "3"}});
  job.run();
  EXPECT_FALSE(job.result(0));
  EXPECT_NE(job.failure(0).find("unknown hyperparameter 'epoch'"), std::string::npos)
      << job.failure(0);
}

TEST(Job, SavesTheModelSoFarWhenItIsStopped) {
  Job job(2, {{"epochs", "1000000"}, {"hidden", "8"}});
  job.put(0, "a.csv", csv(points(30, 1)));
  job.put(1, "b.csv", csv(points(30, 2)));
  job.on_line = [&](std::string_view line) {
    if (line.starts_with("epoch=2 ")) job.stop = true;
  };
  job.run();
  EXPECT_TRUE(job.result(0)) << job.result(0).error().message;
  EXPECT_TRUE(job.result(1)) << job.result(1).error().message;
  EXPECT_TRUE(load_model(job.base(0) + "/model"));
}

TEST(Job, SucceedsWhenItIsStoppedBeforeAllHostsHaveJoined) {
  Job job(1, {});
  ASSERT_TRUE(os::write_file(
      job.base(0) + "/input/config/resourceconfig.json",
      R"({"current_host":"127.0.0.1","hosts":["127.0.0.1","127.0.0.2"],"network_interface_name":"lo"})"));
  job.stop = true;
  job.run();
  EXPECT_TRUE(job.result(0)) << job.result(0).error().message;
}

// -- the real digits ------------------------------------------------------------------------------

TEST(Digits, ThreeSeedsReach97Percent) {
  // Prepared by examples/01_digits/prepare.
  const std::string folder = "../../../build/digits";
  if (!os::exists(folder + "/test.csv"))
    GTEST_SKIP() << "no digits: run examples/01_digits/prepare";
  const auto all = read_shards(folder + "/train");
  ASSERT_TRUE(all) << all.error().message;
  const auto test = parse_csv(*os::read_file(folder + "/test.csv"));
  ASSERT_TRUE(test);
  EXPECT_EQ(test->rows(), 360u);
  Settings settings;
  settings.epochs = 60;
  settings.image_width = 8;
  settings.shift = 0.7f;
  settings.rotate = 10;
  for (const uint64_t seed : {1, 2, 3}) {
    settings.seed = seed;
    const Trained learned = learn(distributed(*all, 2), settings);
    EXPECT_GE(evaluate(learned.model, *test)->accuracy(), 0.97) << "seed " << seed;
  }
}

TEST(Rows, ChecksNumbersFromAnotherRank) {
  const auto encoded = [](const std::string& rows, const std::string& columns,
                          const std::string& label) {
    return R"({"name":")" + to_hex("s") + R"(","rows":)" + rows + R"(,"columns":)" + columns +
           R"(,"largest_label":)" + label + "}";
  };
  const auto agree = [](const std::string& theirs) {
    auto groups = collectives::join_in_memory(2);
    std::thread other([&] { EXPECT_TRUE(groups[1]->all_gather(theirs)); });
    auto rows = Rows::agree({}, *groups[0]);
    other.join();
    return rows;
  };
  const auto good = agree("[" + encoded("3", "4", "2") + "]");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->all(), 3u);
  EXPECT_TRUE(agree("[" + encoded("0", "0", "-1") + "]"));
  for (const char* number : {"-2", "2147483649", "4294967296", "9223372036854775807",
                             "-9223372036854775808", "18446744073709551615", "1e300"})
    for (const auto& shard :
         {encoded(number, "4", "2"), encoded("3", number, "2"), encoded("3", "4", number)}) {
      const auto rows = agree("[" + shard + "]");
      ASSERT_FALSE(rows) << shard;
      EXPECT_NE(rows.error().message.find("shard list of rank 1: "), std::string::npos)
          << rows.error().message;
    }
  // Each number is within its limit, but their sum is not.
  std::string many;
  for (const char* name : {"a", "b", "c"})
    many +=
        (many.empty() ? "[" : ",") + encoded("2147483648", "4", "2").replace(9, 2, to_hex(name));
  EXPECT_FALSE(agree(many + "]"));
}

}  // namespace
}  // namespace trainyard::train
