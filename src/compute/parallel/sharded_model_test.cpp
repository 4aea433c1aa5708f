// Compares training with divided parameters (ZeRO stage 3) with training in one process, and
// compares memory and sent bytes with the formulas of sharded_model.hpp.
#include "parallel/sharded_model.hpp"

#include <gtest/gtest.h>

#include <barrier>

#include "collectives/testing/groups.hpp"
#include "os/temporary_directory.hpp"
#include "parallel/testing/counted_groups.hpp"
#include "parallel/testing/counted_memory.hpp"
#include "parallel/testing/network.hpp"

namespace trainyard::parallel {
namespace {

using namespace testing;

// The network in three units; the first uses its parameters twice.
class DividedNetwork {
 public:
  DividedNetwork(collectives::Group& group, OptimizerSettings settings) : model(group, settings) {
    const Network network;
    const auto named = network.named();
    for (size_t unit = 0; unit < 3; ++unit) {
      const std::vector<NamedTensor> parameters = {named[2 * unit], named[2 * unit + 1]};
      if (group.rank() != 0) {
        const at::NoGradGuard no_gradients;
        for (const NamedTensor& each : parameters)
          at::Tensor(each.tensor).zero_();  // rank 0 sends its values
      }
      const auto added = model.add_unit(parameters);
      EXPECT_TRUE(added) << added.error().message;
      weights.push_back(named[2 * unit].tensor);
      biases.push_back(named[2 * unit + 1].tensor);
    }
  }

  Result<at::Tensor> loss(const Part& part) {
    const auto layer = [this](size_t unit) {
      return [this, unit](const at::Tensor& in) {
        return at::linear(in, weights[unit], biases[unit]);
      };
    };
    at::Tensor values = TRY(model.run(0, part.input, [&](const at::Tensor& in) {
      return at::relu(layer(0)(at::relu(layer(0)(in))));
    }));
    values = TRY(model.run(1, values, layer(1)));
    values = TRY(model.run(2, at::relu(values), layer(2)));
    return at::cross_entropy_loss(values, part.labels);
  }

  // Returns all parameters, gathered.
  std::vector<at::Tensor> parameters() {
    const at::NoGradGuard no_gradients;
    std::vector<at::Tensor> copies;
    for (size_t unit = 0; unit < 3; ++unit) {
      EXPECT_EQ(weights[unit].numel(), 0);  // between runs they are empty
      EXPECT_TRUE(model.run(unit, at::zeros({1}, at::kFloat), [&](const at::Tensor& in) {
        copies.push_back(weights[unit].detach().clone());
        copies.push_back(biases[unit].detach().clone());
        return in;
      }));
    }
    return copies;
  }

  ShardedModel model;
  std::vector<at::Tensor> weights, biases;
};

struct DividedCourse {
  OptimizerSettings optimizer = {.momentum = 0.9, .weight_decay = 1e-3};
  int ranks = 2;
  int passes = 1;
  double rate = 0.1;
};

void run_steps(DividedNetwork& network, collectives::Group& group, const DividedCourse& course,
               int first, int last) {
  for (int step = first; step < last; ++step) {
    network.model.begin();
    for (int pass = 0; pass < course.passes; ++pass) {
      auto loss = network.loss(part_of(step, group.rank() * course.passes + pass));
      ASSERT_TRUE(loss) << loss.error().message;
      EXPECT_EQ(network.model.gathered(), 1u);  // the last unit keeps its values
      loss->backward();
      EXPECT_EQ(network.model.gathered(), 0u);
      const auto ended = network.model.end_pass();
      ASSERT_TRUE(ended) << ended.error().message;
    }
    ASSERT_TRUE(network.model.step(course.rate, 1.0 / (course.passes * group.size())));
  }
}

std::vector<std::vector<at::Tensor>> train(const DividedCourse& course) {
  std::vector<std::vector<at::Tensor>> trained(static_cast<size_t>(course.ranks));
  on_ranks(course.ranks, [&](collectives::Group& group) {
    DividedNetwork network(group, course.optimizer);
    run_steps(network, group, course, 0, kSteps);
    // In each pass two units of the forward and two of the backward pass were gathered early.
    EXPECT_EQ(network.model.prefetched(), uint64_t(4 * kSteps * course.passes));
    trained[size_t(group.rank())] = network.parameters();
  });
  return trained;
}

TEST(ShardedModel, TwoRanksMatchOneProcessBitForBit) {
  for (const Method method :
       {Method::sgd, Method::nag, Method::adam, Method::rmsprop, Method::adamw}) {
    DividedCourse course{.rate = method == Method::sgd ? 0.1 : 0.01};
    course.optimizer.method = method;
    const auto one = train_alone(course.optimizer, 2, course.rate);
    for (const auto& each : train(course))
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(at::equal(each[i], one[i])) << to_string(method) << " parameter " << i;
  }
}

// Shared memory is registered with the group, and TCP copies.
TEST(ShardedModel, MatchesOneProcessOverEveryTransport) {
  using collectives::testing::LinkKind;
  const DividedCourse adam{.optimizer = {.method = Method::adam}, .rate = 0.01};
  const auto one = train_alone(adam.optimizer, 2, adam.rate);
  for (const LinkKind links : {LinkKind::shared, LinkKind::tcp})
    collectives::testing::run_ranks(links, 2, [&](collectives::Group& group) {
      at::set_num_threads(1);
      DividedNetwork network(group, adam.optimizer);
      run_steps(network, group, adam, 0, kSteps);
      EXPECT_EQ(largest_difference(network.parameters(), one), 0);
      EXPECT_TRUE(group.barrier());
    });
}

TEST(ShardedModel, MoreRanksAndPassesMatchOneProcessUpToTheOrderOfSums) {
  for (const auto& [ranks, passes] : {std::pair{1, 1}, {3, 1}, {4, 1}, {2, 2}, {3, 3}})
    for (const Method method : {Method::sgd, Method::lamb}) {
      DividedCourse course{.ranks = ranks, .passes = passes};
      course.optimizer.method = method;
      course.optimizer.clip_norm = 0.3;
      if (method == Method::lamb) course.rate = 0.02;
      const auto one = train_alone(course.optimizer, ranks * passes, course.rate);
      for (const auto& each : train(course))
        EXPECT_LT(largest_difference(each, one), 5e-6) << ranks << " ranks, " << passes;
    }
}

TEST(ShardedModel, CountsAParameterWithoutAGradientAsZero) {
  on_ranks(2, [](collectives::Group& group) {
    const at::Tensor used = parameter({8}, 1), unused = parameter({8}, 2);
    const at::Tensor used_before = used.detach().clone(), unused_before = unused.detach().clone();
    ShardedModel model(group, {.momentum = 0});
    ASSERT_TRUE(model.add_unit({{"a", used}, {"b", unused}}));
    model.begin();
    auto output = model.run(0, at::full({1}, group.rank() + 1.0f),
                            [&](const at::Tensor& in) { return used * in; });
    ASSERT_TRUE(output);
    output->sum().backward();
    ASSERT_TRUE(model.end_pass());
    ASSERT_TRUE(model.step(0.125, 1));
    const at::NoGradGuard no_gradients;
    ASSERT_TRUE(model.run(0, at::zeros({1}, at::kFloat), [&](const at::Tensor& in) {
      EXPECT_TRUE(at::equal(used.detach(), used_before - 0.125 * 3));
      EXPECT_TRUE(at::equal(unused.detach(), unused_before));
      return in;
    }));
  });
}

// -- costs

// Runs the layers of wide_layers() as units. Only one layer exists on its own at a time.
class WideModel {
 public:
  WideModel(collectives::Group& group, OptimizerSettings settings) : model(group, settings) {
    for (int i = 0; i < 12; ++i) {
      layers.push_back(parameter({64, 64}, uint64_t(i) + 1));
      EXPECT_TRUE(model.add_unit({{"layer" + std::to_string(i), layers.back()}}));
    }
  }
  void step(int passes, uint64_t seed) {
    model.begin();
    for (int pass = 0; pass < passes; ++pass) {
      at::Tensor values = random_tensor({4, 64}, seed);
      for (size_t i = 0; i < layers.size(); ++i) {
        auto output = model.run(
            i, values, [&](const at::Tensor& in) { return at::linear(in, layers[i]).tanh(); });
        ASSERT_TRUE(output);
        values = *output;
      }
      values.sum().backward();
      ASSERT_TRUE(model.end_pass());
    }
    ASSERT_TRUE(model.step(0.01, 1));
  }
  std::vector<at::Tensor> parameters() {
    const at::NoGradGuard no_gradients;
    std::vector<at::Tensor> copies;
    for (size_t i = 0; i < layers.size(); ++i)
      EXPECT_TRUE(model.run(i, at::zeros({1}, at::kFloat), [&](const at::Tensor& in) {
        copies.push_back(layers[i].detach().clone());
        return in;
      }));
    return copies;
  }

  ShardedModel model;
  std::vector<at::Tensor> layers;
};

TEST(ShardedModel, HoldsTheMemoryOfItsFormula) {
  for (const Method method : {Method::sgd, Method::adam})
    for (const int ranks : {2, 4}) {
      CountedMemory memory;
      on_ranks(ranks, [&](collectives::Group& group) {
        WideModel wide(group, {.method = method});
        wide.step(2, 1);
        memory.restart_peak();
        wide.step(2, 2);
        const size_t formula =
            ShardedModel::memory_held(kWideBytes, kWideLayerBytes, ranks, method);
        expect_within_5_percent(memory.count().now, formula);
        EXPECT_EQ(wide.model.bytes_held(), formula);
        // During a step: activations, and temporary tensors of a layer and of the optimizer.
        EXPECT_LE(memory.count().peak, formula + (64 << 10)) << ranks;
      });
    }
}

TEST(ShardedModel, SendsTheBytesOfItsFormula) {
  for (const int ranks : {2, 3, 4})
    for (const int passes : {1, 3})
      on_counted_ranks(ranks, [&](collectives::Group& group, std::atomic<uint64_t>& bytes) {
        WideModel wide(group, {});
        ASSERT_TRUE(group.barrier());
        const uint64_t before = bytes;
        for (uint64_t step = 0; step < 2; ++step) wide.step(passes, step);
        expect_within_5_percent(
            bytes - before,
            2 * ShardedModel::bytes_sent(kWideBytes, kWideLayerBytes, ranks, passes));
      });
}

// Runs the same training in one process, with one part per rank.
void step_alone(const std::vector<NamedTensor>& layers, Optimizer& optimizer, int parts,
                uint64_t seed) {
  for (const NamedTensor& each : layers)
    at::Tensor(each.tensor).mutable_grad() = at::zeros({64, 64}, at::kFloat);
  for (int part = 0; part < parts; ++part) {
    at::Tensor values = random_tensor({4, 64}, seed);
    for (const NamedTensor& each : layers) values = at::linear(values, each.tensor).tanh();
    values.sum().backward();
  }
  optimizer.step(0.01, 1);
}

TEST(ShardedModel, TrainsAModelThatDoesNotFitOneRank) {
  const OptimizerSettings adam{.method = Method::adam};
  constexpr int ranks = 4;
  at::set_num_threads(1);
  std::vector<at::Tensor> alone;
  {
    const auto layers = wide_layers();
    Optimizer optimizer(adam, layers);
    for (uint64_t step = 0; step < kSteps; ++step) step_alone(layers, optimizer, ranks, step);
    for (const NamedTensor& each : layers) alone.push_back(each.tensor.detach().clone());
  }
  // Half of what one process needs: parameters, gradients and two numbers of state.
  CountedMemory memory(kWideBytes * 4 / 2);
  EXPECT_THROW(
      {
        const auto layers = wide_layers();
        Optimizer optimizer(adam, layers);
        step_alone(layers, optimizer, ranks, 0);
      },
      std::bad_alloc);
  std::vector<std::vector<at::Tensor>> trained(ranks);
  on_ranks(ranks, [&](collectives::Group& group) {
    WideModel wide(group, adam);
    for (uint64_t step = 0; step < kSteps; ++step) wide.step(1, step);
    EXPECT_LE(memory.count().peak, kWideBytes * 4 / 2);
    // The other ranks have ended their steps, too.
    ASSERT_TRUE(group.barrier());
    memory.lift_limit();
    trained[size_t(group.rank())] = wide.parameters();
  });
  for (const auto& each : trained) EXPECT_LT(largest_difference(each, alone), 1e-4);
}

// -- checkpoints

TEST(ShardedModel, ContinuesFromACheckpointOfAnotherNumberOfRanks) {
  const OptimizerSettings adam{.method = Method::adam, .weight_decay = 1e-3};
  const auto alone = train_alone(adam, 4, 0.01);
  for (const auto& [first, second] : {std::pair{4, 2}, {4, 1}, {1, 4}, {2, 2}}) {
    const os::TemporaryDirectory folder;
    const std::string prefix = folder.path() + "/checkpoint";
    on_ranks(first, [&](collectives::Group& group) {
      DividedNetwork network(group, adam);
      run_steps(network, group, {adam, first, 4 / first, 0.01}, 0, kSteps / 2);
      ASSERT_TRUE(network.model.save(prefix));
    });
    on_ranks(second, [&](collectives::Group& group) {
      DividedNetwork network(group, adam);
      const auto loaded = network.model.load(prefix);
      ASSERT_TRUE(loaded) << loaded.error().message;
      EXPECT_EQ(network.model.steps_done(), kSteps / 2);
      run_steps(network, group, {adam, second, 4 / second, 0.01}, kSteps / 2, kSteps);
      EXPECT_LT(largest_difference(network.parameters(), alone), 5e-6)
          << first << " then " << second;
    });
  }
}

// -- failures

TEST(ShardedModel, ReportsAnotherOrderOfUnitsOnAllRanks) {
  on_ranks(2, [](collectives::Group& group) {
    const at::Tensor a = parameter({8}, 1), b = parameter({8}, 2);
    ShardedModel model(group, {});
    ASSERT_TRUE(model.add_unit({{"a", a}}));
    ASSERT_TRUE(model.add_unit({{"b", b}}));
    model.begin();
    // Both units have the same size, so the messages fit each other.
    at::Tensor values = at::ones({8}, at::kFloat);
    for (const size_t unit : {size_t(group.rank()), size_t(1 - group.rank())}) {
      auto output =
          model.run(unit, values, [&](const at::Tensor& in) { return in * (unit == 0 ? a : b); });
      ASSERT_TRUE(output) << output.error().message;
      values = *output;
    }
    values.sum().backward();
    const auto ended = model.end_pass();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().kind, Kind::conflict) << ended.error().message;
  });
}

TEST(ShardedModel, ReportsOtherUnitsOfEqualSizeOnAllRanks) {
  on_ranks(2, [](collectives::Group& group) {
    std::vector<at::Tensor> layers;
    ShardedModel model(group, {});
    for (uint64_t i = 0; i < 3; ++i) {
      layers.push_back(parameter({8}, i));
      ASSERT_TRUE(model.add_unit({{"layer" + std::to_string(i), layers.back()}}));
    }
    model.begin();
    {
      // Rank 0 gathers units 0 and 1, and rank 1 units 1 and 2: each message fits its receiver.
      const at::NoGradGuard no_gradients;
      ASSERT_TRUE(model.run(size_t(group.rank()), at::ones({8}, at::kFloat),
                            [](const at::Tensor& in) { return in; }));
    }
    const auto ended = model.end_pass();
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().message,
              "rank 1 ran the units of the model in a different order from rank 0");
  });
}

TEST(ShardedModel, NamesARankThatEndsDuringAPass) {
  // Before the forward pass, between the passes, and before the end of the pass.
  for (const int when : {0, 1, 2}) {
    auto groups = collectives::join_in_memory(3);
    std::vector<std::unique_ptr<DividedNetwork>> networks(3);
    std::barrier<> all_are_ready(3);
    std::vector<std::thread> ranks;
    for (size_t rank = 0; rank < 3; ++rank)
      ranks.emplace_back([&, rank] {
        at::set_num_threads(1);
        networks[rank] = std::make_unique<DividedNetwork>(*groups[rank], OptimizerSettings{});
        all_are_ready.arrive_and_wait();
        networks[rank]->model.begin();
        const auto dies = [&](int now) {
          if (rank == 1 && now == when) groups[1]->abandon("the power is out");
          return rank == 1 && now == when;
        };
        if (dies(0)) return;
        auto loss = networks[rank]->loss(part_of(0, int(rank)));
        Result<void> result = loss ? ok() : Result<void>(loss.error());
        if (loss) {
          if (dies(1)) return;
          loss->backward();
          if (dies(2)) return;
          result = networks[rank]->model.end_pass();
        }
        ASSERT_FALSE(result);
        EXPECT_NE(result.error().message.find("rank 1"), std::string::npos)
            << result.error().message;
        EXPECT_NE(result.error().message.find("the power is out"), std::string::npos);
      });
    for (std::thread& each : ranks) each.join();
    networks.clear();
  }
}

}  // namespace
}  // namespace trainyard::parallel
