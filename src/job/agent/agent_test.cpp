#include "agent/agent.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "agent/files/artifact.hpp"
#include "agent/steps.hpp"
#include "base/thread_safety.hpp"
#include "objects/memory.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::agent {
namespace {

using domain::HostState;

// RecordedFacts records the facts of an agent and waits for them.
class RecordedFacts final : public Facts {
 public:
  void state(wire::StateFact fact) override {
    const MutexLock lock(mutex_);
    states_.push_back(std::move(fact));
    changed_.notify_all();
  }
  void lines(std::vector<wire::LogLine> lines) override {
    const MutexLock lock(mutex_);
    for (auto& line : lines) lines_.push_back(std::move(line.text));
    changed_.notify_all();
  }
  void points(std::vector<wire::MetricPoint> points) override {
    const MutexLock lock(mutex_);
    largest_batch_ = std::max(largest_batch_, points.size());
    points_.insert(points_.end(), points.begin(), points.end());
  }
  size_t largest_batch() {
    const MutexLock lock(mutex_);
    return largest_batch_;
  }
  void say(const std::string& text) override { lines({{{}, "trainyard: " + text}}); }

  bool wait_line(const std::string& text) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&]() REQUIRES(mutex_) {
      return std::ranges::find(lines_, text) != lines_.end();
    });
  }
  bool wait_state(HostState state) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&]() REQUIRES(mutex_) {
      return !states_.empty() && states_.back().state >= state;
    });
  }
  std::vector<wire::StateFact> states() {
    const MutexLock lock(mutex_);
    return states_;
  }
  std::vector<std::string> lines() {
    const MutexLock lock(mutex_);
    return lines_;
  }
  std::vector<wire::MetricPoint> points() {
    const MutexLock lock(mutex_);
    return points_;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<wire::StateFact> states_ GUARDED_BY(mutex_);
  std::vector<std::string> lines_ GUARDED_BY(mutex_);
  std::vector<wire::MetricPoint> points_ GUARDED_BY(mutex_);
  size_t largest_batch_ GUARDED_BY(mutex_) = 0;
};

// ScriptedContainer runs a function of the test as the container's process.
class ScriptedContainer final : public containers::Container {
 public:
  struct Controls {  // passed to the function
    int output;
    const std::atomic<bool>& stop_requested;
    const std::atomic<bool>& killed;
    const std::atomic<bool>& largest_requested;
    bool out_of_memory = false;
    void print(const std::string& text) const {
      ASSERT_EQ(::write(output, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
  };
  using Play = std::function<int(Controls&)>;

  ScriptedContainer(Play play, int output) {
    thread_ = std::thread([this, play = std::move(play), output] {
      Controls controls{output, stop_requested_, killed_, largest_requested_};
      const int code = play(controls);
      ::close(output);
      const MutexLock lock(mutex_);
      exit_ = containers::ContainerExit{killed_ ? 137 : code, controls.out_of_memory};
      changed_.notify_all();
    });
  }
  ~ScriptedContainer() override {
    kill_all();
    thread_.join();
  }
  Result<void> signal(int) override {
    stop_requested_ = true;
    return {};
  }
  void kill_all() override {
    const MutexLock lock(mutex_);
    if (!exit_) killed_ = true;
  }
  Result<std::optional<containers::ContainerExit>> wait(Duration at_most) override {
    MutexLock lock(mutex_);
    changed_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) { return exit_.has_value(); });
    return exit_;
  }
  std::vector<containers::ProcessMemory> largest_processes(size_t count_max) override {
    EXPECT_EQ(count_max, 3u);
    largest_requested_ = true;
    return {{"python3", 512 << 20}};
  }
  Result<containers::ContainerUsage> usage() override {
    return containers::ContainerUsage{std::chrono::seconds(1), 512 << 20};
  }

 private:
  std::atomic<bool> stop_requested_ = false, killed_ = false, largest_requested_ = false;
  Mutex mutex_;
  ConditionVariable changed_;
  std::optional<containers::ContainerExit> exit_ GUARDED_BY(mutex_);
  std::thread thread_;
};

class NoEndpoints final : public Endpoints {
 public:
  const contract::EndpointConfig& config() const override { return config_; }

 private:
  contract::EndpointConfig config_{"http://169.254.170.2:4566", "",
                                   "http://169.254.170.2/v2/credentials/1", "t", ""};
};

class AgentTest : public testing::Test {
 protected:
  AgentTest() {
    order_.attempt = {7, 1};
    order_.job = {"eu-west-1", "digits"};
    order_.spec.groups = {{"homogeneousCluster", "ml.m5.large", 1}};
    order_.spec.output_uri = "s3://out/models";
    order_.share.memory_bytes = 1 << 30;
    place_.directory = directory_.path();
    EXPECT_TRUE(objects_->create_bucket("out", "eu-west-1"));
    EXPECT_TRUE(objects_->create_bucket("data", "eu-west-1"));
  }

  // Starts the agent with this as the user's process; the server sends Welcome at once.
  void start(ScriptedContainer::Play play) {
    play_ = std::move(play);
    world_.emplace(Dependencies{
        *objects_,
        [this](const containers::ContainerSpec& spec,
               int output) -> Result<std::unique_ptr<containers::Container>> {
          spec_ = spec;
          return std::unique_ptr<containers::Container>(
              std::make_unique<ScriptedContainer>(play_, output));
        },
        [](const std::string&, const std::string&) { return ok(); },
        [](const domain::Image&, const std::string&,
           const std::function<bool(const std::string&)>& progress) -> Result<ReadyImage> {
          EXPECT_TRUE(progress("Downloading the training image: 1 of 2 MiB"));
          return not_found("there is no such image");
        },
        []() -> Result<std::unique_ptr<Endpoints>> {
          return std::unique_ptr<Endpoints>(std::make_unique<NoEndpoints>());
        },
        said_, clock_, random_});
    world_->await_volume = volume_;
    agent_.emplace(order_, place_, *world_, keys_, false);
    thread_ = std::thread([this] { agent_->run(); });
    agent_->deliver(wire::Welcome{});
    agent_->deliver(wire::Credentials{"id", "secret", "token", clock_.now() + 1h});
  }
  // Waits for the last fact, sends Goodbye, and returns the fact.
  wire::StateFact finish() {
    EXPECT_TRUE(said_.wait_state(HostState::finished));
    agent_->deliver(wire::Goodbye{});
    thread_.join();
    return said_.states().back();
  }
  std::string ml(const std::string& name) const { return directory_.path() + "/ml/" + name; }
  void leave(const std::string& name, const std::string& content) {
    ASSERT_TRUE(os::write_file(ml(name), content));
  }
  bool has(const std::string& key) { return static_cast<bool>(objects_->head("out", key)); }

  os::MachineClock clock_;
  SeededRandom random_{1};
  os::TemporaryDirectory directory_;
  std::unique_ptr<objects::Objects> objects_ = objects::make_memory(clock_, random_);
  RecordedFacts said_;
  JobKeys keys_;
  wire::Order order_;
  HostLayout place_;
  ScriptedContainer::Play play_;
  std::function<Result<void>()> volume_;
  containers::ContainerSpec spec_;
  std::optional<Dependencies> world_;
  std::optional<Agent> agent_;
  std::thread thread_;
};

constexpr const char* kModel = "models/digits/output/model.tar.gz";
constexpr const char* kOutput = "models/digits/output/output.tar.gz";

TEST_F(AgentTest, AJobTrainsAndUploadsItsModel) {
  ASSERT_TRUE(objects::write_all(*objects_, "data", "in/a.csv", "1,2"));
  domain::Channel channel;
  channel.name = "train";
  channel.s3_uri = "s3://data/in/";
  order_.spec.channels = {channel};
  order_.spec.metrics = {{"loss", "loss=([0-9.]+)"}};
  start([this](ScriptedContainer::Controls& controls) {
    EXPECT_EQ(*os::read_file(ml("input/data/train/a.csv")), "1,2");
    EXPECT_EQ(*os::read_file(ml("input/data/train-manifest")),
              R"([{"prefix":"s3://data/in/"},"a.csv"])");
    EXPECT_TRUE(os::exists(ml("input/config/resourceconfig.json")));
    controls.print("epoch 1 loss=0.25\n");
    leave("model/w.bin", "weights");
    return 0;
  });
  const auto last = finish();
  EXPECT_EQ(last.state, HostState::finished);
  EXPECT_EQ(last.model_uri, std::string("s3://out/") + kModel);
  EXPECT_TRUE(has(kModel));
  EXPECT_FALSE(has(kOutput));
  EXPECT_EQ(said_.lines(), std::vector<std::string>{"epoch 1 loss=0.25"});
  EXPECT_TRUE(std::ranges::any_of(said_.points(), [](const auto& point) {
    return point.name == "loss" && point.value == 0.25;
  }));
  EXPECT_FALSE(os::exists(ml("")));
  EXPECT_EQ(spec_.hostname, "algo-1");
  EXPECT_EQ(spec_.shared_memory_bytes, 512u << 20);
  EXPECT_EQ(spec_.arguments, std::vector<std::string>{"train"});
}

TEST_F(AgentTest, SettingsWithoutEffectAreInTheLogOfTheFirstHost) {
  order_.spec.notes = {"VpcConfig has no effect here: hosts share a network"};
  start([](ScriptedContainer::Controls& controls) {
    controls.print("ready\n");
    return 0;
  });
  finish();
  EXPECT_EQ(said_.lines(),
            (std::vector<std::string>{
                "trainyard: VpcConfig has no effect here: hosts share a network", "ready"}));
}

TEST_F(AgentTest, SettingsWithoutEffectAreNotInTheLogsOfOtherHosts) {
  order_.spec.notes = {"VpcConfig has no effect here: hosts share a network"};
  order_.spec.groups[0].count = 2;
  order_.host = 1;
  start([](ScriptedContainer::Controls&) { return 0; });
  finish();
  EXPECT_TRUE(said_.lines().empty());
}

TEST_F(AgentTest, ReportsItsAddressOnce) {
  place_.address = "10.1.0.2";
  start([](ScriptedContainer::Controls&) { return 0; });
  finish();
  for (const auto& fact : said_.states())
    EXPECT_EQ(fact.address, fact.state == HostState::preparing ? "10.1.0.2" : "");
}

TEST_F(AgentTest, SendsNoAddressToAServerOfTheFirstRelease) {
  place_.address = "10.1.0.2";
  order_.wire_version = 1;
  start([](ScriptedContainer::Controls&) { return 0; });
  finish();
  for (const auto& fact : said_.states()) EXPECT_EQ(fact.address, "");
}

TEST_F(AgentTest, AFailureKeepsOutputDataOnly) {
  start([this](ScriptedContainer::Controls&) {
    leave("model/w.bin", "weights");
    leave("output/data/report", "text");
    leave("output/failure", "no such column\n");
    return 2;
  });
  const auto last = finish();
  EXPECT_EQ(last.state, HostState::failed);
  EXPECT_EQ(last.message, "no such column");
  EXPECT_EQ(last.exit_code, 2);
  EXPECT_FALSE(has(kModel));
  EXPECT_TRUE(has(kOutput));
}

TEST_F(AgentTest, OutOfMemoryNamesTheLimit) {
  start([](ScriptedContainer::Controls& controls) {
    controls.out_of_memory = true;
    return 137;
  });
  EXPECT_EQ(finish().message,
            "OutOfMemory: exceeded its 1.0 GiB memory limit (1/8 of ml.m5.large)");
}

TEST_F(AgentTest, OutOfMemoryNamesTheLargestProcess) {
  start([](ScriptedContainer::Controls& controls) {
    while (!controls.largest_requested) std::this_thread::yield();
    controls.out_of_memory = true;
    return 137;
  });
  EXPECT_EQ(
      finish().message,
      "OutOfMemory: exceeded its 1.0 GiB memory limit (1/8 of ml.m5.large); largest processes: "
      "python3 (512 MiB)");
}

TEST_F(AgentTest, ASignalIsDescribedBeforeTheLastLines) {
  start([](ScriptedContainer::Controls& controls) {
    for (int i = 0; i < 100; ++i) controls.print("step " + std::to_string(i) + "\n");
    return 139;
  });
  const std::string message = finish().message;
  EXPECT_TRUE(message.starts_with("killed by SIGSEGV (segmentation fault)\nstep 80\nstep 81\n"))
      << message;
  EXPECT_TRUE(message.ends_with("\nstep 99")) << message;
}

TEST_F(AgentTest, AStopEndsTheProcessAndUploadsTheModel) {
  start([this](ScriptedContainer::Controls& controls) {
    controls.print("ready\n");
    while (!controls.stop_requested) std::this_thread::yield();
    leave("model/w.bin", "saved");
    return 0;
  });
  ASSERT_TRUE(said_.wait_line("ready"));
  agent_->deliver(wire::Stop{domain::StopCause::user, 60s});
  EXPECT_EQ(finish().state, HostState::finished);
  EXPECT_TRUE(has(kModel));
}

TEST_F(AgentTest, AProcessThatIgnoresTheStopIsKilled) {
  start([](ScriptedContainer::Controls& controls) {
    controls.print("ready\n");
    while (!controls.killed) std::this_thread::yield();
    return 0;
  });
  ASSERT_TRUE(said_.wait_line("ready"));
  agent_->deliver(wire::Stop{domain::StopCause::max_runtime, 1ms});
  EXPECT_EQ(finish().exit_code, 137);
  EXPECT_TRUE(has(kModel));
}

TEST_F(AgentTest, AReclaimedMachineSavesCheckpointsAndLeavesItsEndToTheServer) {
  order_.spec.checkpoint = {"s3://out/ckpt", "/opt/ml/checkpoints"};
  start([this](ScriptedContainer::Controls& controls) {
    controls.print("ready\n");
    while (!controls.stop_requested) std::this_thread::yield();
    leave("checkpoints/step-7", "saved");
    leave("model/w.bin", "unfinished");
    return 143;
  });
  ASSERT_TRUE(said_.wait_line("ready"));
  agent_->reclaim();
  agent_->reclaim();  // as Slurm does at the end of the grace period
  thread_.join();
  EXPECT_TRUE(has("ckpt/step-7"));
  EXPECT_FALSE(has(kModel));
  EXPECT_FALSE(os::exists(ml("")));
  const wire::StateFact last = said_.states().back();
  EXPECT_EQ(last.state, HostState::uploading);
  EXPECT_EQ(last.stopped, domain::StopCause::interrupted);
  for (const wire::StateFact& fact : said_.states()) EXPECT_FALSE(fact.fault) << fact.message;
}

TEST_F(AgentTest, ARefusalKillsTheProcessAndRemovesTheHostsFiles) {
  start([](ScriptedContainer::Controls& controls) {
    controls.print("ready\n");
    while (!controls.killed) std::this_thread::yield();
    return 0;
  });
  ASSERT_TRUE(said_.wait_line("ready"));
  agent_->deliver(wire::Refused{"the token is old"});
  thread_.join();
  EXPECT_FALSE(os::exists(ml("")));
  EXPECT_FALSE(has(kModel));
}

TEST_F(AgentTest, ALaterHostStagesItsFiles) {
  order_.spec.groups[0].count = 2;
  order_.host = 1;
  start([this](ScriptedContainer::Controls&) {
    leave("model/same", "two");
    leave("output/data/o", "two");
    return 0;
  });
  EXPECT_EQ(finish().model_uri, "");
  std::string staged;
  for (const auto& fact : said_.states()) staged += fact.staged_model;
  EXPECT_EQ(staged, "models/digits/output/staged/j7a1/algo-2.model.tar");
  EXPECT_TRUE(has(staged));
  EXPECT_TRUE(has("models/digits/output/staged/j7a1/algo-2.output.tar"));
}

TEST_F(AgentTest, TheFirstHostMergesStagedFiles) {
  std::string tar_bytes;
  auto tar = *write_tar(Compression::none, [&](std::span<const char> bytes) -> Result<void> {
    tar_bytes.append(bytes.data(), bytes.size());
    return {};
  });
  TarEntry entry;
  entry.name = "same";
  ASSERT_TRUE(tar->add(entry, {}));
  ASSERT_TRUE(tar->finish());
  ASSERT_TRUE(objects::write_all(*objects_, "out", "s/algo-2.model.tar", tar_bytes));
  order_.spec.groups[0].count = 3;
  start([this](ScriptedContainer::Controls&) {
    leave("model/same", "one");
    return 0;
  });
  agent_->deliver(wire::PeersDrained{{"s/algo-2.model.tar", ""}});
  EXPECT_EQ(finish().model_uri, std::string("s3://out/") + kModel);
  EXPECT_TRUE(
      said_.wait_line("trainyard: /opt/ml/model/same of algo-2 was kept as same.algo-2: another "
                      "host has that name too"));
  EXPECT_FALSE(has("s/algo-2.model.tar"));
  EXPECT_FALSE(has(kOutput));
}

TEST_F(AgentTest, AFailedGangUploadsNoModel) {
  order_.spec.groups[0].count = 2;
  start([this](ScriptedContainer::Controls&) {
    leave("model/w", "one");
    return 0;
  });
  ASSERT_TRUE(said_.wait_state(HostState::uploading));
  agent_->deliver(wire::Stop{domain::StopCause::host_failed, 1s});
  EXPECT_EQ(finish().state, HostState::finished);
  EXPECT_FALSE(has(kModel));
}

TEST_F(AgentTest, AMissingOutputBucketIsTheUsersFault) {
  order_.spec.output_uri = "s3://nowhere/models";
  start([](ScriptedContainer::Controls&) { return 0; });
  const auto last = finish();
  EXPECT_EQ(last.fault, domain::Fault::client);
  EXPECT_TRUE(last.message.starts_with("Artifact upload failed: s3://nowhere/models: "))
      << last.message;
}

TEST_F(AgentTest, AMissingImageIsTheUsersFault) {
  order_.image.kind = domain::Image::Kind::oci;
  start([](ScriptedContainer::Controls&) { return 0; });
  EXPECT_EQ(finish().fault, domain::Fault::client);
}

TEST_F(AgentTest, FailuresOfBatchJobsHaveTheNameForRetryRules) {
  order_.spec.queue.emplace();
  order_.spec.contract = domain::Contract::plain;
  order_.image.kind = domain::Image::Kind::oci;
  start([](ScriptedContainer::Controls&) { return 0; });
  const auto last = finish();
  EXPECT_TRUE(last.message.starts_with("CannotPullContainerError: The image ")) << last.message;
}

TEST_F(AgentTest, AChannelNamedLikeItsParentIsRefused) {
  domain::Channel channel;
  channel.name = "..";
  channel.s3_uri = "s3://data/in/";
  order_.spec.channels = {channel};
  start([](ScriptedContainer::Controls&) { return 0; });
  EXPECT_EQ(finish().fault, domain::Fault::client);
}

// Forty regexes that match every line of a flood: their points are sent in frames that fit.
TEST_F(AgentTest, SplitsManyMetricsIntoBatches) {
  for (int i = 0; i < 40; ++i)
    order_.spec.metrics.push_back({std::string(200, 'm') + std::to_string(i), "([0-9])"});
  start([](ScriptedContainer::Controls& controls) {
    std::string lines;
    for (int i = 0; i < 5000; ++i) lines += "1\n";
    for (int i = 0; i < 2; ++i) controls.print(lines);
    return 0;
  });
  finish();
  size_t points = 0;
  for (const auto& point : said_.points()) points += point.of_host ? 0 : 1;
  EXPECT_EQ(points, 400'000u);
  EXPECT_LE(said_.largest_batch(), kBatchPointsMax + 40);
}

// Replaces `directory` of /opt/ml by a link to `target`.
void replace_by_link(const std::string& directory, const std::string& target) {
  ASSERT_TRUE(os::remove_all(directory));
  ASSERT_EQ(::symlink(target.c_str(), directory.c_str()), 0);
}

// Every synced directory is a link to the machine's files when the process ends.
TEST_F(AgentTest, NothingIsReadThroughReplacedDirectories) {
  const os::TemporaryDirectory machine;
  ASSERT_TRUE(
      os::write_file(machine.path() + "/1.json", R"({"MetricName": "secret", "Value": 1})"));
  order_.spec.checkpoint = {"s3://out/ckpt", "/opt/ml/checkpoints"};
  start([&](ScriptedContainer::Controls&) {
    for (const char* name :
         {"model", "output/data", "output/intermediate", "output/metrics/sagemaker", "checkpoints"})
      replace_by_link(ml(name), machine.path());
    return 0;
  });
  const auto last = finish();
  EXPECT_EQ(last.state, HostState::failed);
  EXPECT_EQ(last.fault, domain::Fault::client);
  EXPECT_NE(last.message.find("/opt/ml/checkpoints could not be copied to s3://out/ckpt/"),
            std::string::npos)
      << last.message;
  EXPECT_NE(last.message.find("leads through a link"), std::string::npos) << last.message;
  std::string keys;
  const auto listed = objects_->list("out", {});
  for (const auto& object : listed->objects) keys += object.key + " ";
  EXPECT_EQ(keys, std::string(kModel) + " ");
  auto reader = objects_->get("out", kModel);
  const auto tar =
      read_tar([&](std::span<char> buffer) { return (*reader)->read(buffer); }, Compression::gzip);
  const auto entry = (*tar)->next();
  EXPECT_TRUE(entry && !*entry) << "an empty archive";
  for (const auto& point : said_.points()) EXPECT_NE(point.name, "secret");
  EXPECT_TRUE(said_.wait_line("trainyard: /opt/ml/model is not kept: model: leads through a link"));
  EXPECT_EQ(os::list_directory(machine.path())->size(), 1u) << "and nothing was written there";
}

TEST_F(AgentTest, TheFailureFileIsNotReadThroughALink) {
  const os::TemporaryDirectory machine;
  ASSERT_TRUE(os::write_file(machine.path() + "/failure", "the secret"));
  start([&](ScriptedContainer::Controls& controls) {
    replace_by_link(ml("output"), machine.path());
    controls.print("last words\n");
    return 1;
  });
  const auto last = finish();
  EXPECT_EQ(last.message, "last words");
  EXPECT_EQ(last.fault, domain::Fault::algorithm);
}

// The machine's own disk has no limit for one job.
TEST_F(AgentTest, AllWritablePathsAreOnTheVolume) {
  volume_ = [] { return ok(); };
  order_.spec.checkpoint = {"s3://out/ckpt", "/ckpt"};
  order_.spec.tensorboard = {"s3://out/board", "/board"};
  start([](ScriptedContainer::Controls&) { return 0; });
  finish();
  std::string writable;
  for (const auto& mount : spec_.mounts) {
    if (mount.read_only || mount.destination == "/opt/ml") continue;
    writable += mount.destination + " ";
    EXPECT_TRUE(mount.source.starts_with(directory_.path() + "/disk/")) << mount.source;
  }
  EXPECT_EQ(writable, "/ckpt /board /opt/trainyard/activity /etc/hosts /etc/resolv.conf ");
}

TEST_F(AgentTest, AJobWithoutAVolumeWritesToMemoryOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  order_.spec.contract = domain::Contract::plain;
  order_.spec.arguments = {"true"};
  start([this](ScriptedContainer::Controls&) {
    for (const auto& mount : spec_.mounts)
      EXPECT_TRUE(mount.read_only || !os::write_file(mount.source, std::string(1 << 20, 'x')));
    return 0;
  });
  finish();
  EXPECT_TRUE(os::list_directory(directory_.path())->empty());
}

TEST_F(AgentTest, UndoMayRunTwiceOrWithoutItsStep) {
  start([](ScriptedContainer::Controls&) { return 0; });
  finish();
  Interruption interruption;
  WelcomeLatch welcome;
  StepContext context{order_, place_, *world_, keys_, interruption, welcome, false,
                      {},     {},     {},      {},    {},           {},      {}};
  undo_all(context);
  undo_all(context);
  EXPECT_EQ(os::list_directory(directory_.path())->size(), 0u);
}

}  // namespace
}  // namespace trainyard::agent
