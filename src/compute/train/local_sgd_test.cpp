// Compares accuracy and sent bytes of training in regions with training in one group. Uses the real
// digits if they are prepared.
#include "train/trainer.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "base/testing/sanitized.hpp"
#include "collectives/testing/groups.hpp"
#include "collectives/transport/memory/memory_transport.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "train/evaluate.hpp"

namespace trainyard::train {
namespace {

using collectives::Group;
using collectives::Tag;
using collectives::Transport;
using local_sgd::LocalSgdOptions;

// A transport whose ranks are in regions. It counts the bytes that they send to other regions.
class CountingTransport final : public Transport {
 public:
  CountingTransport(std::unique_ptr<Transport> inner, int ranks_of_region,
                    std::atomic<uint64_t>& bytes_between)
      : inner_(std::move(inner)),
        ranks_of_region_(ranks_of_region),
        bytes_between_(bytes_between) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void send(std::span<const int> peers, Tag tag, std::span<const std::byte> bytes) override {
    for (const int peer : peers) {
      if (peer / ranks_of_region_ != rank() / ranks_of_region_) bytes_between_ += bytes.size();
    }
    inner_->send(peers, tag, bytes);
  }
  void receive_into(int peer, Tag tag, std::span<std::byte> into) override {
    inner_->receive_into(peer, tag, into);
  }
  void receive(int peer, Tag tag, std::span<std::byte> destination) override {
    inner_->receive(peer, tag, destination);
  }
  const std::byte* arrived(int peer) override { return inner_->arrived(peer); }
  void release(int peer) override { inner_->release(peer); }
  Result<bool> has_message(int peer) override { return inner_->has_message(peer); }
  bool all_received() const override { return inner_->all_received(); }
  bool all_sent() const override { return inner_->all_sent(); }
  Result<void> advance() override { return inner_->advance(); }
  Result<void> wait() override { return inner_->wait(); }
  std::vector<int> hosts() const override {
    std::vector<int> hosts;
    for (int rank = 0; rank < size(); ++rank) hosts.push_back(rank / ranks_of_region_);
    return hosts;
  }
  Result<std::string> offer() override { return inner_->offer(); }
  Result<std::unique_ptr<Transport>> connect_members(const std::vector<int>& members,
                                                     const std::vector<std::string>& offers,
                                                     uint64_t key) override {
    return inner_->connect_members(members, offers, key);
  }
  void abandon(std::string_view why) override { inner_->abandon(why); }

 private:
  const std::unique_ptr<Transport> inner_;
  const int ranks_of_region_;
  std::atomic<uint64_t>& bytes_between_;
};

struct Learned {
  Model model;
  uint64_t bytes_between = 0;  // bytes between regions, counted at the senders
  int64_t steps = 0;
  std::vector<std::string> lines;  // of the first region
};

// Returns the shards of a rank, distributed like ShardedByS3Key.
std::vector<Shard> shards_of(const std::vector<Shard>& all, int rank, int ranks) {
  std::vector<Shard> shards;
  for (size_t i = size_t(rank); i < all.size(); i += size_t(ranks)) shards.push_back(all[i]);
  return shards;
}

Learned train_on(Group& group, const std::vector<Shard>& shards, const Settings& settings,
                 std::optional<LocalSgdOptions> region) {
  os::MachineClock clock;
  Learned learned;
  auto rows = Rows::agree(shards, group);
  EXPECT_TRUE(rows) << rows.error().message;
  auto trainer = Trainer::make(
      settings, *std::move(rows), group, clock,
      [&](std::string_view line) { learned.lines.emplace_back(line); }, std::move(region));
  EXPECT_TRUE(trainer) << trainer.error().message;
  if (!trainer) return learned;
  const std::atomic<bool> stop = false;
  const auto finished = trainer->run(stop);
  EXPECT_TRUE(finished) << finished.error().message;
  learned.model = trainer->model();
  learned.bytes_between = trainer->traffic().sent;
  learned.steps = trainer->steps_done();
  return learned;
}

Learned step_together(const std::vector<Shard>& shards, const Settings& settings, int regions,
                      int ranks_of_region) {
  const int ranks = regions * ranks_of_region;
  std::atomic<uint64_t> bytes_between = 0;
  auto transports = collectives::connect_in_memory(ranks);
  std::vector<Learned> learned(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto group =
          Group::make(std::make_unique<CountingTransport>(std::move(transports[size_t(rank)]),
                                                          ranks_of_region, bytes_between),
                      {.deterministic = true});
      ASSERT_TRUE(group) << group.error().message;
      learned[size_t(rank)] = train_on(**group, shards_of(shards, rank, ranks), settings, {});
    });
  }
  for (auto& thread : threads) thread.join();
  learned[0].bytes_between = bytes_between;
  return learned[0];
}

Learned train_in_regions(const std::vector<Shard>& shards, Settings settings, int regions,
                         int ranks_of_region) {
  const int ranks = regions * ranks_of_region;
  const auto leaders = collectives::testing::endpoints(regions);
  settings.regions.count = regions;
  std::vector<Learned> learned(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int region = 0; region < regions; ++region) {
    auto groups = collectives::join_in_memory(ranks_of_region);
    for (int rank = 0; rank < ranks_of_region; ++rank) {
      threads.emplace_back([&, region, rank, group = std::move(groups[size_t(rank)])] {
        LocalSgdOptions options;
        options.leaders = leaders;
        options.region = region;
        options.shared_value = "train_test";
        Settings own = settings;
        own.regions.own = region;
        const int index = region * ranks_of_region + rank;
        learned[size_t(index)] = train_on(*group, shards_of(shards, index, ranks), own, options);
      });
    }
  }
  for (auto& thread : threads) thread.join();
  for (size_t rank = 1; rank < learned.size(); ++rank) {
    EXPECT_EQ(learned[rank].model.parameters, learned[0].model.parameters);
    EXPECT_EQ(learned[rank].steps, learned[0].steps);
    learned[0].bytes_between += learned[rank].bytes_between;
  }
  return learned[0];
}

class DigitsInRegions : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef TRAINYARD_SANITIZED
    GTEST_SKIP() << "six trainings are minutes under a sanitizer; the tests of regions over "
                    "loopback run there";
#endif
    // Prepared by examples/01_digits/prepare.
    const std::string folder = "../../../build/digits";
    if (!os::exists(folder + "/test.csv"))
      GTEST_SKIP() << "no digits: run examples/01_digits/prepare";
    auto shards = read_shards(folder + "/train");
    ASSERT_TRUE(shards) << shards.error().message;
    shards_ = *std::move(shards);
    test_ = *parse_csv(*os::read_file(folder + "/test.csv"));
    settings_.epochs = 200;  // as in examples/01_digits
    settings_.image_width = 8;
    settings_.shift = 0.7f;
    settings_.rotate = 10;
  }
  double accuracy(const Learned& learned) { return evaluate(learned.model, test_)->accuracy(); }

  std::vector<Shard> shards_;
  Table test_;
  Settings settings_;
};

TEST_F(DigitsInRegions, SendAHundredthOfAnAllreduceWithEqualAccuracy) {
  constexpr int regions = 2;
  constexpr int ranks_of_region = 2;
  constexpr int seeds = 3;
  double joint_accuracy = 0;
  double regional_accuracy = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    settings_.seed = uint64_t(seed);
    const Learned joint = step_together(shards_, settings_, regions, ranks_of_region);
    const Learned regional = train_in_regions(shards_, settings_, regions, ranks_of_region);
    EXPECT_EQ(regional.steps, joint.steps);
    // The minimum of any allreduce between regions: each element is sent to a region and back once,
    // for all regions except one.
    const double parameters = double(joint.model.parameters.size());
    const double steps = double(joint.steps);
    const double least = 2.0 * (regions - 1) * sizeof(float) * parameters * steps;
    EXPECT_GE(double(joint.bytes_between), least);
    EXPECT_LE(double(regional.bytes_between), least / 100);
    const auto rounds = size_t(std::ceil(steps / double(settings_.regions.steps)));
    const size_t formula =
        rounds * local_sgd::round_bytes(local_sgd::Coding::bf16, size_t(parameters), regions);
    EXPECT_GE(regional.bytes_between, formula);
    EXPECT_LE(regional.bytes_between, formula + 1000);  // handshakes
    joint_accuracy += accuracy(joint) / seeds;
    regional_accuracy += accuracy(regional) / seeds;
    std::printf(
        "seed %d: accuracy joint %.4f regional %.4f; bytes joint %llu (float32, least: %.0f) "
        "regional %llu\n",
        seed, accuracy(joint), accuracy(regional), (unsigned long long)joint.bytes_between, least,
        (unsigned long long)regional.bytes_between);
  }
  std::printf("accuracy joint %.4f regional %.4f\n", joint_accuracy, regional_accuracy);
  EXPECT_GE(joint_accuracy, 0.97);
  EXPECT_NEAR(regional_accuracy, joint_accuracy, 0.005);
}

TEST_F(DigitsInRegions, Int8CodingSendsA390thOfAnAllreduce) {
  settings_.regions.coding = local_sgd::Coding::int8;
  settings_.epochs = 100;
  const Learned regional = train_in_regions(shards_, settings_, 2, 1);
  const double least =
      2.0 * sizeof(float) * double(regional.model.parameters.size()) * double(regional.steps);
  EXPECT_LE(double(regional.bytes_between), least / 380);
  EXPECT_GE(accuracy(regional), 0.97);
  std::printf("accuracy %.4f, 1/%.0f of the bytes\n", accuracy(regional),
              least / double(regional.bytes_between));
}

TEST_F(DigitsInRegions, FourRegionsWithFederatedAveragingTrainReproducibly) {
  settings_.epochs = 40;
  settings_.regions.outer = {.learning_rate = 1, .momentum = 0};
  const Learned first = train_in_regions(shards_, settings_, 4, 1);
  const Learned second = train_in_regions(shards_, settings_, 4, 1);
  EXPECT_EQ(first.model.parameters, second.model.parameters);
  EXPECT_GE(accuracy(first), 0.95);
  // The link of the leader carries what all other regions send and receive.
  EXPECT_NE(first.lines.back().find("share_of_allreduce=0.01"), std::string::npos)
      << first.lines.back();
}

TEST(LocalSgd, LimitsTheStepsAfterRoundsOfAnotherRegion) {
  EXPECT_EQ(steps_after(0, 100, 1000), 0);
  EXPECT_EQ(steps_after(3, 100, 1000), 300);
  for (const uint64_t rounds :
       {uint64_t(10), uint64_t(1) << 31, uint64_t(1) << 32, uint64_t(INT64_MAX), UINT64_MAX})
    for (const int64_t steps_of_round : {int64_t(100), int64_t(1) << 20})
      EXPECT_EQ(steps_after(rounds, steps_of_round, 1000), 1000) << rounds;
  EXPECT_EQ(steps_after(UINT64_MAX, 1, kStepsMax), kStepsMax);
}

}  // namespace
}  // namespace trainyard::train
