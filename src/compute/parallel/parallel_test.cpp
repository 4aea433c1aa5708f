// Compares data parallel training with training in one process, optimizers with their formulas, and
// schedules and buckets with tables.
#include <gtest/gtest.h>

#include <barrier>
#include <cmath>
#include <thread>

#include "base/random.hpp"
#include "parallel/buckets.hpp"
#include "parallel/data_parallel.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/schedule.hpp"
#include "parallel/stored_tensors.hpp"
#include "parallel/testing/network.hpp"

namespace trainyard::parallel {
namespace {

using namespace testing;

// -- schedules and buckets

TEST(Schedule, WarmsUpAndDecays) {
  Schedule schedule{.base = 0.8, .warm_up = 4};
  EXPECT_DOUBLE_EQ(schedule.rate(0), 0.2);
  EXPECT_DOUBLE_EQ(schedule.rate(3), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(1000), 0.8);
  schedule.decay = Decay::milestones;
  schedule.milestones = {10, 20};
  schedule.factor = 0.5;
  EXPECT_DOUBLE_EQ(schedule.rate(9), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(10), 0.4);
  EXPECT_DOUBLE_EQ(schedule.rate(20), 0.2);
  schedule.decay = Decay::cosine;
  schedule.steps = 24;
  EXPECT_DOUBLE_EQ(schedule.rate(4), 0.8);
  EXPECT_DOUBLE_EQ(schedule.rate(14), 0.4);
  EXPECT_NEAR(schedule.rate(24), 0, 1e-12);
  EXPECT_NEAR(schedule.rate(100), 0, 1e-12);
  schedule.decay = Decay::polynomial;
  schedule.power = 2;
  EXPECT_DOUBLE_EQ(schedule.rate(14), 0.2);
}

TEST(Buckets, FollowTheOrderOfTheBackwardPass) {
  const std::vector<size_t> bytes = {64, 1, 256, 64, 128};
  const std::vector<int32_t> order = {4, 3, 2, 1, 0};
  const std::vector<Bucket> expected = {
      {{4}, {0}, 128}, {{3}, {0}, 64}, {{2}, {0}, 256}, {{1, 0}, {0, 64}, 128}};
  EXPECT_EQ(plan_buckets(bytes, order, {.first_bytes = 128, .bytes = 192}), expected);
  EXPECT_TRUE(plan_buckets({}, {}, {}).empty());
}

TEST(Buckets, ContainEveryGradientOnceWithinTheLimits) {
  SeededRandom random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<size_t> bytes;
    std::vector<int32_t> order;
    for (uint64_t i = random.below(40); i > 0; --i) {
      order.push_back(int32_t(bytes.size()));
      bytes.push_back(4 * (1 + random.below(300)));
    }
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    const BucketLimits limits{.first_bytes = 512, .bytes = 2048};
    std::vector<int32_t> found;
    for (const Bucket& bucket : plan_buckets(bytes, order, limits)) {
      EXPECT_TRUE(bucket.bytes <= limits.bytes || bucket.gradients.size() == 1);
      for (size_t i = 0; i < bucket.gradients.size(); ++i) {
        found.push_back(int32_t(bucket.gradients[i]));
        EXPECT_EQ(bucket.begins[i] % kGradientAlignment, 0u);
        EXPECT_LE(bucket.begins[i] + bytes[bucket.gradients[i]],
                  i + 1 < bucket.begins.size() ? bucket.begins[i + 1] : bucket.bytes);
      }
    }
    EXPECT_EQ(found, order);
  }
}

// -- optimizers

// Computes one parameter by the formulas of optimizer.hpp, in doubles.
struct Expected {
  double weight, momentum = 0, square = 0;
  void step(const OptimizerSettings& settings, double g, double rate, int steps) {
    const Method method = settings.method;
    const double mu = settings.momentum, decay = settings.weight_decay, gamma = settings.gamma;
    const double beta_1 = settings.beta_1, beta_2 = settings.beta_2, epsilon = settings.epsilon;
    if (method == Method::adamw) {
      weight -= rate * decay * weight;
    } else {
      g += decay * weight;
    }
    if (method == Method::adam || method == Method::adamw) {
      momentum = beta_1 * momentum + (1 - beta_1) * g;
      square = beta_2 * square + (1 - beta_2) * g * g;
      weight -= rate * momentum / (1 - std::pow(beta_1, steps)) /
                (std::sqrt(square / (1 - std::pow(beta_2, steps))) + epsilon);
    } else if (method == Method::rmsprop) {
      square = gamma * square + (1 - gamma) * g * g;
      weight -= rate * g / (std::sqrt(square) + epsilon);
    } else {
      momentum = mu * momentum + g;
      weight -= rate * (method == Method::nag ? g + mu * momentum : momentum);
    }
  }
};

TEST(Optimizer, StepsByItsFormula) {
  for (const Method method :
       {Method::sgd, Method::nag, Method::adam, Method::rmsprop, Method::adamw}) {
    const OptimizerSettings settings{.method = method, .weight_decay = 0.01, .epsilon = 1e-4};
    const at::Tensor weights = parameter({3, 2}, 1);
    Optimizer optimizer(settings, {{"w", weights}});
    std::vector<Expected> expected;
    for (int i = 0; i < 6; ++i) expected.push_back({values_of(weights)[i]});
    for (int step = 1; step <= 10; ++step) {
      const at::Tensor gradient = random_tensor({3, 2}, uint64_t(100 + step));
      at::Tensor(weights).mutable_grad() = gradient;
      optimizer.step(0.05, 0.5);
      for (int i = 0; i < 6; ++i)
        expected[size_t(i)].step(settings, 0.5 * values_of(gradient)[i], 0.05, step);
    }
    for (int i = 0; i < 6; ++i)
      EXPECT_NEAR(values_of(weights)[i], expected[size_t(i)].weight, 1e-5)
          << to_string(method) << " " << i;
    EXPECT_EQ(int(optimizer.state().size()), numbers_held(method));
  }
}

double norm_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double each : numbers) sum += each * each;
  return std::sqrt(sum);
}

// Returns the weights of one parameter after a step by the formulas of lars and lamb, in doubles.
struct ExpectedByNorm {
  std::vector<double> weights, momenta = std::vector<double>(weights.size()), squares = momenta;
  void step(const OptimizerSettings& settings, const std::vector<double>& g, double rate,
            int steps) {
    std::vector<double> u(g.size());
    const double decay = settings.weight_decay;
    double trust = 1;
    if (settings.method == Method::lars) {
      trust =
          settings.trust_coefficient * norm_of(weights) / (norm_of(g) + decay * norm_of(weights));
      for (size_t i = 0; i < g.size(); ++i) {
        momenta[i] = settings.momentum * momenta[i] + trust * rate * (g[i] + decay * weights[i]);
        weights[i] -= momenta[i];
      }
      return;
    }
    for (size_t i = 0; i < g.size(); ++i) {
      momenta[i] = settings.beta_1 * momenta[i] + (1 - settings.beta_1) * g[i];
      squares[i] = settings.beta_2 * squares[i] + (1 - settings.beta_2) * g[i] * g[i];
      u[i] =
          momenta[i] / (1 - std::pow(settings.beta_1, steps)) /
              (std::sqrt(squares[i] / (1 - std::pow(settings.beta_2, steps))) + settings.epsilon) +
          decay * weights[i];
    }
    trust = norm_of(weights) / norm_of(u);
    for (size_t i = 0; i < g.size(); ++i) weights[i] -= rate * trust * u[i];
  }
};

TEST(Optimizer, StepsByTheNormsOfItsParameters) {
  for (const Method method : {Method::lars, Method::lamb}) {
    const OptimizerSettings settings{
        .method = method, .weight_decay = 0.01, .epsilon = 1e-4, .trust_coefficient = 0.02};
    const at::Tensor weights = parameter({3, 2}, 1), bias = parameter({1}, 7);
    Optimizer optimizer(settings, {{"w", weights}, {"b", bias}});
    ExpectedByNorm expected{{values_of(weights), values_of(weights) + 6}};
    for (int step = 1; step <= 10; ++step) {
      const at::Tensor gradient = random_tensor({3, 2}, uint64_t(100 + step));
      at::Tensor(weights).mutable_grad() = gradient;
      at::Tensor(bias).mutable_grad() = at::zeros({1}, at::kFloat);
      optimizer.step(0.05, 0.5);
      std::vector<double> scaled;
      for (int i = 0; i < 6; ++i) scaled.push_back(0.5 * values_of(gradient)[i]);
      expected.step(settings, scaled, 0.05, step);
    }
    for (size_t i = 0; i < 6; ++i)
      EXPECT_NEAR(values_of(weights)[i], expected.weights[i], 1e-5) << to_string(method) << i;
    EXPECT_TRUE(at::equal(bias.detach(), parameter({1}, 7).detach()));  // no gradient, no decay
  }
}

TEST(Optimizer, ClipsTheNormOfAllGradientsTogether) {
  for (const double clip : {0.5, 100.0}) {
    const at::Tensor a = parameter({2, 2}, 1), b = parameter({3}, 2);
    const at::Tensor before_a = a.detach().clone(), before_b = b.detach().clone();
    Optimizer optimizer({.momentum = 0, .clip_norm = clip}, {{"a", a}, {"b", b}});
    at::Tensor(a).mutable_grad() = random_tensor({2, 2}, 3);
    at::Tensor(b).mutable_grad() = random_tensor({3}, 4);
    optimizer.step(1, 2);
    std::vector<double> gradients, moved;
    for (const auto& [after, before] : {std::pair{a, before_a}, {b, before_b}})
      for (int64_t i = 0; i < before.numel(); ++i) {
        gradients.push_back(2 * values_of(after.grad())[i]);
        moved.push_back(values_of(before)[i] - values_of(after)[i]);
      }
    ASSERT_GT(norm_of(gradients), 0.5);
    ASSERT_LT(norm_of(gradients), 100.0);
    EXPECT_NEAR(norm_of(moved), std::min(clip, norm_of(gradients)), 1e-5);
    for (size_t i = 0; i < moved.size(); ++i)
      EXPECT_NEAR(moved[i], gradients[i] * norm_of(moved) / norm_of(gradients), 1e-5);
  }
}

TEST(Optimizer, BiasesDoNotDecay) {
  const at::Tensor bias = parameter({4}, 1);
  const at::Tensor before = bias.detach().clone();
  Optimizer optimizer({.weight_decay = 0.5}, {{"b", bias}});
  at::Tensor(bias).mutable_grad() = at::zeros({4}, at::kFloat);
  optimizer.step(0.1, 1);
  EXPECT_TRUE(at::equal(bias.detach(), before));
}

// -- checkpoints

TEST(StoredTensors, RoundTripAndNameTensorsThatDoNotFit) {
  const std::vector<NamedTensor> model = {{"a", random_tensor({2, 3}, 1)},
                                          {"b", random_tensor({}, 2)}};
  checkpoint::Contents contents;
  add_tensors(model, contents);
  const std::string bytes = checkpoint::encode(contents);
  const std::vector<NamedTensor> read = {{"a", at::zeros({2, 3}, at::kFloat)},
                                         {"b", at::zeros({}, at::kFloat)}};
  ASSERT_TRUE(assign_tensors(*checkpoint::decode(bytes), read));
  EXPECT_TRUE(at::equal(read[0].tensor, model[0].tensor));
  EXPECT_TRUE(at::equal(read[1].tensor, model[1].tensor));
  const auto other = assign_tensors(contents, {{"a", at::zeros({3, 2}, at::kFloat)}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "tensor a is F32 of shape [2,3], but the model needs F32 of shape [3,2]");
  EXPECT_FALSE(assign_tensors(contents, {{"c", at::zeros({1}, at::kFloat)}}));
}

// -- data parallel

// Trains as one rank with `parts` parts.
std::vector<at::Tensor> train(collectives::Group& group, const std::vector<int>& parts,
                              BucketLimits limits = {.first_bytes = 1024, .bytes = 2048}) {
  const Network network;
  if (group.rank() != 0) {
    const at::NoGradGuard no_gradients;
    for (const at::Tensor& each : network.parameters)
      at::Tensor(each).zero_();  // rank 0 sends its values
  }
  auto made = DataParallel::make(network.parameters, group, limits);
  EXPECT_TRUE(made) << made.error().message;
  DataParallel& parallel = **made;
  Optimizer optimizer({.momentum = 0.9, .weight_decay = 1e-3}, network.named());
  for (int step = 0; step < kSteps; ++step) {
    parallel.begin(int(parts.size()));
    for (const int each : parts) {
      const Part part = part_of(step, each);
      network.loss(part.input, part.labels).backward();
    }
    // Every bucket was started by the backward pass itself, not by finish().
    EXPECT_EQ(parallel.started(), parallel.buckets().size());
    const auto finished = parallel.finish();
    EXPECT_TRUE(finished) << finished.error().message;
    optimizer.step(0.1, 1.0 / (double(parts.size()) * group.size()));
  }
  std::vector<at::Tensor> trained;
  for (const at::Tensor& each : network.parameters) trained.push_back(each.detach().clone());
  return trained;
}

std::vector<std::vector<at::Tensor>> train_on(int ranks, int parts_of_rank = 1) {
  at::set_num_threads(1);
  auto groups = collectives::join_in_memory(ranks);
  std::vector<std::vector<at::Tensor>> trained(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      std::vector<int> parts;
      for (int i = 0; i < parts_of_rank; ++i) parts.push_back(rank * parts_of_rank + i);
      trained[size_t(rank)] = train(*groups[size_t(rank)], parts);
    });
  for (std::thread& each : threads) each.join();
  return trained;
}

TEST(DataParallel, TwoRanksMatchOneProcessBitForBit) {
  const auto two = train_on(2), one = train_on(1, 2);
  for (size_t i = 0; i < two[0].size(); ++i) {
    EXPECT_TRUE(at::equal(two[0][i], one[0][i])) << "parameter " << i;
    EXPECT_TRUE(at::equal(two[1][i], one[0][i])) << "parameter " << i;
  }
  EXPECT_GT(largest_difference(two[0],
                               [] {
                                 std::vector<at::Tensor> initial;
                                 for (const at::Tensor& each : Network().parameters)
                                   initial.push_back(each.detach());
                                 return initial;
                               }()),
            0.01);
}

TEST(DataParallel, MoreRanksMatchOneProcessUpToTheOrderOfSums) {
  for (const int ranks : {3, 4}) {
    const auto several = train_on(ranks), one = train_on(1, ranks);
    for (int rank = 1; rank < ranks; ++rank)
      EXPECT_EQ(largest_difference(several[size_t(rank)], several[0]), 0) << rank;
    EXPECT_LT(largest_difference(several[0], one[0]), 2e-6) << ranks << " ranks";
  }
}

TEST(DataParallel, TheSumOfPartsMatchesTheWholeBatch) {
  at::set_num_threads(1);
  const auto parts = train_on(2);
  const Network network;
  Optimizer optimizer({.momentum = 0.9, .weight_decay = 1e-3}, network.named());
  for (int step = 0; step < kSteps; ++step) {
    const Part a = part_of(step, 0), b = part_of(step, 1);
    for (const at::Tensor& each : network.parameters)
      at::Tensor(each).mutable_grad() = at::zeros_like(each.detach());
    network.loss(at::cat({a.input, b.input}), at::cat({a.labels, b.labels})).backward();
    optimizer.step(0.1, 1);
  }
  std::vector<at::Tensor> whole;
  for (const at::Tensor& each : network.parameters) whole.push_back(each.detach());
  EXPECT_LT(largest_difference(parts[0], whole), 1e-5);
}

TEST(DataParallel, OrdersBucketsLikeTheFirstBackwardPass) {
  auto groups = collectives::join_in_memory(1);
  // Used in the order b, a: the backward pass makes the gradient of a first, and that of b last.
  const at::Tensor a = parameter({64, 64}, 1), b = parameter({64, 64}, 2);
  auto parallel = DataParallel::make({a, b}, *groups[0], {.first_bytes = 1, .bytes = 1});
  ASSERT_TRUE(parallel);
  EXPECT_EQ((*parallel)->buckets()[0].gradients, std::vector<size_t>{1});
  (*parallel)->begin();
  at::linear(at::linear(at::ones({1, 64}, at::kFloat), b), a).sum().backward();
  const at::Tensor gradient = b.grad().clone();
  ASSERT_TRUE((*parallel)->finish());
  EXPECT_EQ((*parallel)->buckets()[0].gradients, std::vector<size_t>{0});
  EXPECT_TRUE(at::equal(b.grad(), gradient));  // kept when the buckets changed
}

TEST(DataParallel, CountsAParameterWithoutAGradientAsZero) {
  auto groups = collectives::join_in_memory(2);
  std::vector<std::thread> ranks;
  for (auto& group : groups)
    ranks.emplace_back([&group] {
      const at::Tensor used = parameter({8}, 1), unused = parameter({8}, 2);
      auto parallel = DataParallel::make({used, unused}, *group);
      ASSERT_TRUE(parallel);
      for (int step = 0; step < 2; ++step) {
        (*parallel)->begin();
        (used * float(group->rank() + 1)).sum().backward();
        ASSERT_TRUE((*parallel)->finish());
        EXPECT_TRUE(at::equal(used.grad(), at::full({8}, 3.0f)));
        EXPECT_TRUE(at::equal(unused.grad(), at::zeros({8}, at::kFloat)));
      }
    });
  for (std::thread& each : ranks) each.join();
}

TEST(DataParallel, ReducesTheGradientsOncePerStep) {
  auto groups = collectives::join_in_memory(2);
  std::vector<std::thread> ranks;
  for (auto& group : groups)
    ranks.emplace_back([&group] {
      train(*group, {group->rank()});
      size_t padded = 0, parameters = 0;
      for (const at::Tensor& each : Network().parameters) {
        padded +=
            (each.nbytes() + kGradientAlignment - 1) / kGradientAlignment * kGradientAlignment;
        parameters += each.nbytes();
      }
      // Parameters once, gradients in each step, and less than a KiB to agree.
      const uint64_t bytes = group->counters().bytes;
      EXPECT_GE(bytes, parameters + kSteps * padded);
      EXPECT_LE(bytes, parameters + kSteps * padded + 1024);
    });
  for (std::thread& each : ranks) each.join();
}

TEST(DataParallel, RejectsRanksWithOtherShapes) {
  auto groups = collectives::join_in_memory(2);
  std::vector<std::thread> ranks;
  for (auto& group : groups)
    ranks.emplace_back([&group] {
      const auto parallel = DataParallel::make({parameter({8 + group->rank()}, 1)}, *group);
      ASSERT_FALSE(parallel);
      EXPECT_EQ(parallel.error().message, "rank 1 has parameters of other shapes than rank 0");
    });
  for (std::thread& each : ranks) each.join();
}

TEST(DataParallel, NamesARankThatEndsDuringAStep) {
  auto groups = collectives::join_in_memory(2);
  std::vector<std::unique_ptr<DataParallel>> parallels(2);
  std::barrier<> all_are_ready(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      const at::Tensor used = parameter({8}, 1);
      parallels[size_t(rank)] = *DataParallel::make({used}, *groups[size_t(rank)]);
      all_are_ready.arrive_and_wait();
      if (rank == 1) return groups[1]->abandon("the power is out");
      parallels[0]->begin();
      used.sum().backward();
      const auto finished = parallels[0]->finish();
      ASSERT_FALSE(finished);
      EXPECT_NE(finished.error().message.find("the power is out"), std::string::npos)
          << finished.error().message;
    });
  for (std::thread& each : ranks) each.join();
}

}  // namespace
}  // namespace trainyard::parallel
