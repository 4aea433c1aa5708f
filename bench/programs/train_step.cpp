// Runs training steps of the image classification trainer: train_step IMAGES STEPS THREADS
//
// ResNet-18 on images of 224 x 224, in one process: forward, backward, buckets of gradients, and
// SGD with momentum and decay. Prints the microseconds of the median step, as the other programs
// do.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "algorithms/image_classification/resnet.hpp"
#include "collectives/group.hpp"
#include "parallel/data_parallel.hpp"
#include "parallel/optimizer.hpp"

namespace {

using namespace trainyard;

constexpr int kClasses = 1000, kWarmUp = 2;

int run(int64_t images, int steps, int threads) {
  at::set_num_threads(threads);
  auto groups = collectives::join_in_memory(1);
  algorithms::ResNet network(18, {}, kClasses, 1);
  std::vector<at::Tensor> parameters;
  for (const auto& each : network.parameters()) parameters.push_back(each.tensor);
  auto parallel = parallel::DataParallel::make(std::move(parameters), *groups[0]);
  if (!parallel) return 1;
  parallel::Optimizer optimizer({.weight_decay = 1e-4}, network.parameters());
  const at::Tensor input = at::randn({images, 3, 224, 224});
  const at::Tensor labels = at::randint(kClasses, {images}, at::kLong);
  std::vector<double> microseconds;
  for (int step = 0; step < kWarmUp + steps; ++step) {
    const auto began = std::chrono::steady_clock::now();
    (*parallel)->begin();
    const at::Tensor loss = at::cross_entropy_loss(network.forward(input, true), labels);
    loss.backward();
    if (!(*parallel)->finish()) return 1;
    network.apply_statistics(1);
    optimizer.step(0.01, 1);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    if (step >= kWarmUp) microseconds.push_back(took.count());
  }
  std::sort(microseconds.begin(), microseconds.end());
  std::printf("{\"microseconds\": %.1f}\n", microseconds[microseconds.size() / 2]);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: train_step IMAGES STEPS THREADS\n");
    return 2;
  }
  return run(std::atoi(arguments[1]), std::atoi(arguments[2]), std::atoi(arguments[3]));
}
