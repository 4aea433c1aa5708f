// Makes a small network and its data, for tests that compare strategies with one process.
//
// Threads: plain values. Errors: none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "collectives/group.hpp"
#include "parallel/data_parallel.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/stored_tensors.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel::testing {

inline at::Tensor random_tensor(at::IntArrayRef sizes, uint64_t seed) {
  SeededRandom random(seed);
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  auto* values = static_cast<float*>(tensor.data_ptr());
  for (int64_t i = 0; i < tensor.numel(); ++i)
    values[i] = float(int64_t(random.below(2000)) - 1000) / 1000.0f;
  return tensor;
}

inline at::Tensor parameter(at::IntArrayRef sizes, uint64_t seed) {
  return random_tensor(sizes, seed).requires_grad_(true);
}

inline float* values_of(const at::Tensor& tensor) { return static_cast<float*>(tensor.data_ptr()); }

// A perceptron of three layers whose first layer is used twice, so its gradient is a sum.
struct Network {
  std::vector<at::Tensor> parameters = {parameter({16, 16}, 1), parameter({16}, 2),
                                        parameter({24, 16}, 3), parameter({24}, 4),
                                        parameter({3, 24}, 5),  parameter({3}, 6)};
  at::Tensor loss(const at::Tensor& input, const at::Tensor& labels) const {
    at::Tensor hidden = at::relu(at::linear(input, parameters[0], parameters[1]));
    hidden = at::relu(at::linear(hidden, parameters[0], parameters[1]));
    hidden = at::relu(at::linear(hidden, parameters[2], parameters[3]));
    return at::cross_entropy_loss(at::linear(hidden, parameters[4], parameters[5]), labels);
  }
  std::vector<NamedTensor> named() const {
    std::vector<NamedTensor> all;
    for (const at::Tensor& each : parameters) all.push_back({std::to_string(all.size()), each});
    return all;
  }
};

inline std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& each : tensors) copies.push_back(each.detach().clone());
  return copies;
}

inline constexpr int kSteps = 10;
inline constexpr int64_t kPartRows = 8;

struct Part {
  at::Tensor input, labels;
};
// Returns the rows of a part, which depend on the step and the part, not on the rank that computes
// it.
inline Part part_of(int step, int part) {
  SeededRandom random(uint64_t(1000 * step + part));
  at::Tensor labels = at::empty({kPartRows}, at::kLong);
  for (int64_t i = 0; i < kPartRows; ++i)
    static_cast<int64_t*>(labels.data_ptr())[i] = int64_t(random.below(3));
  return {random_tensor({kPartRows, 16}, random.next()), labels};
}

// Returns the parameters after training in one process, with `parts` parts in each step, one after
// another.
inline std::vector<at::Tensor> train_alone(OptimizerSettings settings, int parts,
                                           double rate = 0.1) {
  at::set_num_threads(1);
  auto groups = collectives::join_in_memory(1);
  const Network network;
  auto parallel = *DataParallel::make(network.parameters, *groups[0]);
  Optimizer optimizer(settings, network.named());
  for (int step = 0; step < kSteps; ++step) {
    parallel->begin(parts);
    for (int i = 0; i < parts; ++i) {
      const Part part = part_of(step, i);
      network.loss(part.input, part.labels).backward();
    }
    CHECK(parallel->finish(), "a group of one rank does not fail");
    optimizer.step(rate, 1.0 / parts);
  }
  return copies_of(network.parameters);
}

inline double largest_difference(const std::vector<at::Tensor>& a,
                                 const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, (a[i] - b[i]).abs().max().item().toDouble());
  return largest;
}

// Returns layers of 64 x 64, so that the gaps between parameters hardly matter.
inline std::vector<NamedTensor> wide_layers() {
  std::vector<NamedTensor> layers;
  for (int i = 0; i < 12; ++i)
    layers.push_back({"layer" + std::to_string(i), parameter({64, 64}, uint64_t(i) + 1)});
  return layers;
}
inline constexpr size_t kWideLayerBytes = 64 * 64 * 4;
inline constexpr size_t kWideBytes = 12 * kWideLayerBytes;

inline void expect_within_5_percent(size_t measured, size_t formula) {
  EXPECT_GE(double(measured), 0.95 * double(formula));
  EXPECT_LE(double(measured), 1.05 * double(formula));
}

// Runs each rank of an in-memory group on its own thread. The groups live until all have ended.
template <class Play>
void on_ranks(int ranks, const Play& play) {
  auto groups = collectives::join_in_memory(ranks);
  std::vector<std::thread> threads;
  for (auto& group : groups)
    threads.emplace_back([&play, &group] {
      at::set_num_threads(1);
      play(*group);
    });
  for (std::thread& each : threads) each.join();
}

}  // namespace trainyard::parallel::testing
