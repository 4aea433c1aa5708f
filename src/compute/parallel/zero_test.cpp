// Compares training with divided state and gradients (ZeRO stages 1 and 2) with training in one
// process, and compares memory and sent bytes with the formulas of zero.hpp.
#include "parallel/zero.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <filesystem>
#include <numeric>

#include "collectives/testing/groups.hpp"
#include "os/temporary_directory.hpp"
#include "parallel/shard_layout.hpp"
#include "parallel/testing/counted_groups.hpp"
#include "parallel/testing/counted_memory.hpp"
#include "parallel/testing/network.hpp"

namespace trainyard::parallel {
namespace {

using namespace testing;

// -- the layout

TEST(ShardLayout, CutsABucketIntoEqualShards) {
  // Two parameters of 40 and 8 numbers: at bytes 0 and 192 of a bucket.
  const std::vector<size_t> bytes = {160, 32};
  const std::vector<int32_t> order = {0, 1};
  const auto buckets = plan_sharded_buckets(bytes, order, {}, 3);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].bytes, 384u);  // 256, padded to a multiple of 3 x 64
  using Parts = std::vector<ShardPart>;
  EXPECT_EQ(parts_of_shard(buckets[0], bytes, 0, 3), (Parts{{0, 0, 32, 0}}));
  EXPECT_EQ(parts_of_shard(buckets[0], bytes, 1, 3), (Parts{{0, 32, 8, 0}, {1, 0, 8, 16}}));
  EXPECT_EQ(parts_of_shard(buckets[0], bytes, 2, 3), Parts{});
}

TEST(ShardLayout, HoldsEveryElementOnceOnOneRank) {
  SeededRandom random(11);
  for (int round = 0; round < 200; ++round) {
    const int ranks = 1 + int(random.below(7));
    std::vector<size_t> bytes;
    for (uint64_t i = 1 + random.below(20); i > 0; --i)
      bytes.push_back(4 * (1 + random.below(300)));
    std::vector<int32_t> order(bytes.size());
    std::iota(order.rbegin(), order.rend(), 0);
    std::vector<std::vector<int>> seen;
    for (const size_t each : bytes) seen.emplace_back(each / 4, 0);
    for (const Bucket& bucket :
         plan_sharded_buckets(bytes, order, {.first_bytes = 512, .bytes = 2048}, ranks))
      for (int rank = 0; rank < ranks; ++rank)
        for (const ShardPart& part : parts_of_shard(bucket, bytes, rank, ranks)) {
          EXPECT_LE((part.position + part.count) * 4, bucket.bytes / size_t(ranks));
          for (size_t i = 0; i < part.count; ++i) ++seen[part.parameter][part.begin + i];
        }
    for (const auto& parameter : seen)
      for (const int each : parameter) ASSERT_EQ(each, 1);
  }
}

// -- training

constexpr BucketLimits kSmallBuckets{.first_bytes = 1024, .bytes = 2048};

struct Course {
  ZeroStage stage = ZeroStage::optimizer_state;
  OptimizerSettings optimizer = {.momentum = 0.9, .weight_decay = 1e-3};
  int ranks = 2;
  int passes = 1;
  double rate = 0.1;
  ZeroSettings settings() const { return {stage, optimizer, kSmallBuckets, {}}; }
};

void run_steps(Zero& zero, const Network& network, collectives::Group& group, const Course& course,
               int first, int last) {
  for (int step = first; step < last; ++step) {
    zero.begin(course.passes);
    for (int pass = 0; pass < course.passes; ++pass) {
      const Part part = part_of(step, group.rank() * course.passes + pass);
      network.loss(part.input, part.labels).backward();
      // Every bucket was started by the backward pass itself.
      if (course.stage == ZeroStage::gradients || pass + 1 == course.passes) {
        EXPECT_EQ(zero.started(), zero.buckets());
      }
      const auto ended = zero.end_pass();
      ASSERT_TRUE(ended) << ended.error().message;
    }
    const auto stepped = zero.step(course.rate, 1.0 / (course.passes * group.size()));
    ASSERT_TRUE(stepped) << stepped.error().message;
  }
}

std::vector<std::vector<at::Tensor>> train(const Course& course) {
  std::vector<std::vector<at::Tensor>> trained(static_cast<size_t>(course.ranks));
  on_ranks(course.ranks, [&](collectives::Group& group) {
    const Network network;
    if (group.rank() != 0) {
      const at::NoGradGuard no_gradients;
      for (at::Tensor each : network.parameters) each.zero_();  // rank 0 sends its values
    }
    auto zero = Zero::make(network.named(), group, course.settings());
    ASSERT_TRUE(zero) << zero.error().message;
    EXPECT_GT((*zero)->buckets(), 2u);
    run_steps(**zero, network, group, course, 0, kSteps);
    trained[size_t(group.rank())] = copies_of(network.parameters);
  });
  return trained;
}

constexpr Method kElementwise[] = {Method::sgd, Method::nag, Method::adam, Method::rmsprop,
                                   Method::adamw};
constexpr ZeroStage kStages[] = {ZeroStage::optimizer_state, ZeroStage::gradients};

TEST(Zero, TwoRanksMatchOneProcessBitForBit) {
  for (const ZeroStage stage : kStages)
    for (const Method method : kElementwise) {
      Course course{.stage = stage, .rate = method == Method::sgd ? 0.1 : 0.01};
      course.optimizer.method = method;
      const auto one = train_alone(course.optimizer, 2, course.rate);
      for (const auto& each : train(course))
        for (size_t i = 0; i < one.size(); ++i)
          EXPECT_TRUE(at::equal(each[i], one[i])) << to_string(method) << " parameter " << i;
      EXPECT_GT(largest_difference(one, copies_of(Network().parameters)), 0.01);
    }
}

// Shared memory is registered with the group, and TCP copies.
TEST(Zero, MatchesOneProcessOverEveryTransport) {
  using collectives::testing::LinkKind;
  const Course adam{.optimizer = {.method = Method::adam}, .rate = 0.01};
  const auto one = train_alone(adam.optimizer, 2, adam.rate);
  for (const ZeroStage stage : kStages)
    for (const LinkKind links : {LinkKind::shared, LinkKind::tcp})
      collectives::testing::run_ranks(links, 2, [&](collectives::Group& group) {
        at::set_num_threads(1);
        Course course = adam;
        course.stage = stage;
        const Network network;
        auto zero = Zero::make(network.named(), group, course.settings());
        ASSERT_TRUE(zero) << zero.error().message;
        run_steps(**zero, network, group, course, 0, kSteps);
        for (size_t i = 0; i < one.size(); ++i)
          EXPECT_TRUE(at::equal(network.parameters[i].detach(), one[i])) << "parameter " << i;
        EXPECT_TRUE(group.barrier());
      });
}

TEST(Zero, MoreRanksAndPassesMatchOneProcessUpToTheOrderOfSums) {
  for (const ZeroStage stage : kStages)
    for (const auto& [ranks, passes] : {std::pair{3, 1}, {4, 1}, {2, 2}, {3, 3}}) {
      const Course course{.stage = stage, .ranks = ranks, .passes = passes};
      const auto several = train(course);
      const auto one = train_alone(course.optimizer, ranks * passes);
      for (const auto& each : several) {
        EXPECT_EQ(largest_difference(each, several[0]), 0);
        EXPECT_LT(largest_difference(each, one), 5e-6) << ranks << " ranks, " << passes;
      }
    }
}

TEST(Zero, ComputesNormsOfWholeParameters) {
  for (const ZeroStage stage : kStages)
    for (const Method method : {Method::sgd, Method::lars, Method::lamb}) {
      Course course{.stage = stage, .ranks = 3, .rate = method == Method::sgd ? 0.1 : 0.02};
      course.optimizer.method = method;
      course.optimizer.clip_norm = 0.3;  // less than the norms of these gradients
      course.optimizer.trust_coefficient = 0.5;
      const auto one = train_alone(course.optimizer, 3, course.rate);
      for (const auto& each : train(course))
        EXPECT_LT(largest_difference(each, one), 5e-6) << to_string(method);
      OptimizerSettings free = course.optimizer;
      free.clip_norm = 0;
      if (method != Method::lamb) {  // lamb barely depends on the size of gradients
        EXPECT_GT(largest_difference(train_alone(free, 3, course.rate), one), 1e-4);
      }
    }
}

TEST(Zero, CountsAParameterWithoutAGradientAsZero) {
  for (const ZeroStage stage : kStages)
    on_ranks(2, [&](collectives::Group& group) {
      const at::Tensor used = parameter({8}, 1), unused = parameter({8}, 2);
      const at::Tensor before = used.detach().clone();
      auto zero = Zero::make({{"a", used}, {"b", unused}}, group,
                             {stage, {.momentum = 0}, {.first_bytes = 1, .bytes = 1}, {}});
      ASSERT_TRUE(zero);
      for (int step = 0; step < 2; ++step) {
        (*zero)->begin();
        // In the second step only rank 0 has a gradient.
        if (step == 0 || group.rank() == 0) (used * float(group.rank() + 1)).sum().backward();
        ASSERT_TRUE((*zero)->end_pass());
        ASSERT_TRUE((*zero)->step(0.125, 1));
      }
      EXPECT_TRUE(at::equal(used.detach(), before - 0.125 * 3 - 0.125));
      EXPECT_TRUE(at::equal(unused.detach(), parameter({8}, 2).detach()));
    });
}

// -- costs

constexpr BucketLimits kWideBuckets{.first_bytes = 32 << 10, .bytes = 32 << 10};

void wide_pass(const std::vector<NamedTensor>& layers, uint64_t seed) {
  at::Tensor values = random_tensor({4, 64}, seed);
  for (const NamedTensor& each : layers) values = at::linear(values, each.tensor).tanh();
  values.sum().backward();
}

// The bytes of a rank's tensors: between two steps, and the peak.
struct Held {
  size_t now = 0, peak = 0, reported = 0;
};

Held held_by_rank(ZeroStage stage, Method method, int ranks, int passes) {
  CountedMemory memory;
  std::vector<Held> held(static_cast<size_t>(ranks));
  on_ranks(ranks, [&](collectives::Group& group) {
    std::vector<NamedTensor> layers = wide_layers();
    auto zero = *Zero::make(layers, group, {stage, {.method = method}, kWideBuckets, {}});
    for (int step = 0; step < 2; ++step) {
      if (step == 1) memory.restart_peak();
      zero->begin(passes);
      for (int pass = 0; pass < passes; ++pass) {
        wide_pass(layers, uint64_t(step));
        EXPECT_TRUE(zero->end_pass());
      }
      EXPECT_TRUE(zero->step(0.01, 1));
    }
    const auto count = memory.count();
    held[size_t(group.rank())] = {count.now, count.peak, zero->bytes_held()};
  });
  for (const Held& each : held) EXPECT_NEAR(double(each.now), double(held[0].now), 4096);
  return held[0];
}

TEST(Zero, HoldsTheMemoryOfItsFormula) {
  for (const ZeroStage stage : kStages)
    for (const Method method : {Method::sgd, Method::adam})
      for (const int ranks : {2, 4}) {
        const size_t formula = memory_held(stage, kWideBytes, 32 << 10, ranks, method);
        const Held held = held_by_rank(stage, method, ranks, 2);
        expect_within_5_percent(held.now, formula);
        EXPECT_EQ(held.reported, formula);
        // During a step: activations, and temporary tensors of a layer and of the optimizer.
        EXPECT_LE(held.peak, formula + (96 << 10)) << ranks;
      }
  // Each stage holds less than the one before.
  EXPECT_LT(held_by_rank(ZeroStage::gradients, Method::adam, 4, 1).now,
            held_by_rank(ZeroStage::optimizer_state, Method::adam, 4, 1).now * 8 / 10);
}

TEST(Zero, SendsTheBytesOfItsFormula) {
  for (const ZeroStage stage : kStages)
    for (const int ranks : {2, 3, 4})
      for (const int passes : {1, 3})
        on_counted_ranks(ranks, [&](collectives::Group& group, std::atomic<uint64_t>& bytes) {
          std::vector<NamedTensor> layers = wide_layers();
          auto zero = *Zero::make(layers, group, {stage, {}, kWideBuckets, {}});
          ASSERT_TRUE(group.barrier());
          const uint64_t before = bytes;
          for (int step = 0; step < 2; ++step) {
            zero->begin(passes);
            for (int pass = 0; pass < passes; ++pass) {
              wide_pass(layers, uint64_t(step));
              ASSERT_TRUE(zero->end_pass());
            }
            ASSERT_TRUE(zero->step(0.01, 1));
          }
          expect_within_5_percent(bytes - before, 2 * bytes_sent(stage, kWideBytes, ranks, passes));
        });
}

// -- checkpoints

// Trains the first half on some ranks, then the second half, from a checkpoint, on others.
std::vector<at::Tensor> train_in_halves(const Course& first, const Course& second) {
  const os::TemporaryDirectory folder;
  const std::string prefix = folder.path() + "/checkpoint";
  std::vector<at::Tensor> saved;
  on_ranks(first.ranks, [&](collectives::Group& group) {
    const Network network;
    auto zero = *Zero::make(network.named(), group, first.settings());
    run_steps(*zero, network, group, first, 0, kSteps / 2);
    const auto done = zero->save(prefix);
    EXPECT_TRUE(done) << done.error().message;
    if (group.rank() == 0) saved = copies_of(network.parameters);
  });
  std::vector<at::Tensor> trained;
  on_ranks(second.ranks, [&](collectives::Group& group) {
    const Network network;
    ZeroSettings settings = second.settings();
    settings.buckets = {.first_bytes = 256, .bytes = 512};  // other sizes than before
    auto zero = *Zero::make(network.named(), group, settings);
    const auto loaded = zero->load(prefix);
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(zero->steps_done(), kSteps / 2);
    EXPECT_EQ(largest_difference(copies_of(network.parameters), saved), 0);
    run_steps(*zero, network, group, second, kSteps / 2, kSteps);
    if (group.rank() == 0) trained = copies_of(network.parameters);
  });
  return trained;
}

TEST(Zero, ContinuesFromACheckpointOfAnotherNumberOfRanks) {
  OptimizerSettings adam{.method = Method::adam, .weight_decay = 1e-3};
  // All have four parts in a step.
  const Course four{ZeroStage::optimizer_state, adam, 4, 1, 0.01};
  const Course two{ZeroStage::gradients, adam, 2, 2, 0.01};
  const Course one{ZeroStage::optimizer_state, adam, 1, 4, 0.01};
  const auto alone = train_alone(adam, 4, 0.01);
  for (const auto& [first, second] :
       {std::pair{four, two}, {four, one}, {two, four}, {one, four}, {one, two}})
    EXPECT_LT(largest_difference(train_in_halves(first, second), alone), 5e-6)
        << first.ranks << " then " << second.ranks;
  // With the same order of sums it continues bit for bit.
  EXPECT_EQ(largest_difference(train_in_halves(one, one), alone), 0);
}

TEST(Zero, AllRanksRejectADamagedCheckpoint) {
  const os::TemporaryDirectory folder;
  const std::string prefix = folder.path() + "/checkpoint";
  on_ranks(3, [&](collectives::Group& group) {
    const Network network;
    auto zero = *Zero::make(network.named(), group, Course{}.settings());
    ASSERT_TRUE(zero->save(prefix));
  });
  std::filesystem::remove(prefix + "-0-00001-of-00003.safetensors");
  on_ranks(2, [&](collectives::Group& group) {
    const Network network;
    auto zero = *Zero::make(network.named(), group, Course{}.settings());
    const auto loaded = zero->load(prefix);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().message.find("-0-00001-of-00003.safetensors"), std::string::npos)
        << loaded.error().message;
  });
}

// -- failures

TEST(Zero, RejectsRanksWithOtherShapes) {
  on_ranks(2, [](collectives::Group& group) {
    const auto zero = Zero::make({{"a", parameter({8 + group.rank()}, 1)}}, group, {});
    ASSERT_FALSE(zero);
    EXPECT_EQ(zero.error().message, "rank 1 has parameters of other shapes than rank 0");
  });
}

TEST(Zero, NamesARankThatEndsDuringAStep) {
  for (const ZeroStage stage : kStages) {
    std::vector<std::unique_ptr<Zero>> zeros(3);
    auto groups = collectives::join_in_memory(3);
    std::barrier<> all_are_ready(3);
    std::vector<std::thread> ranks;
    for (size_t rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] {
        at::set_num_threads(1);
        const Network network;
        zeros[rank] =
            *Zero::make(network.named(), *groups[rank], Course{.stage = stage}.settings());
        all_are_ready.arrive_and_wait();
        const Part part = part_of(0, int(rank));
        zeros[rank]->begin();
        network.loss(part.input, part.labels).backward();
        if (rank == 1) return groups[1]->abandon("the power is out");
        auto ended = zeros[rank]->end_pass();
        if (ended) ended = zeros[rank]->step(0.1, 1);
        ASSERT_FALSE(ended);
        EXPECT_NE(ended.error().message.find("rank 1"), std::string::npos) << ended.error().message;
        EXPECT_NE(ended.error().message.find("the power is out"), std::string::npos);
      });
    for (std::thread& each : ranks) each.join();
    zeros.clear();
  }
}

}  // namespace
}  // namespace trainyard::parallel
