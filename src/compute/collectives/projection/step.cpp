#include "collectives/projection/step.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace trainyard::collectives::projection {
namespace {

// The forward pass is one third of the arithmetic of a step, the backward pass two.
constexpr double kForwardShare = 1.0 / 3;

double quantile_of_normal(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

void add_convolution(std::vector<Layer>& layers, double in, double out, double kernel,
                     double side) {
  const double parameters = in * out * kernel * kernel;
  layers.push_back({parameters, 2 * parameters * side * side});
}

void add_dense(std::vector<Layer>& layers, double in, double out, double times = 1) {
  layers.push_back({in * out + out, 2 * in * out * times});
}

// Returns the convolutions of a ResNet with bottlenecks, for an image of side `side`.
std::vector<Layer> residual_layers(int depth, double side) {
  std::vector<Layer> layers;
  add_convolution(layers, 3, 64, 7, side / 2);
  const int blocks[] = {3, 4, depth == 101 ? 23 : 6, 3};
  double in = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const double width = 64 << stage;
    const double here = side / double(4 << stage);
    for (int block = 0; block < blocks[stage]; ++block) {
      add_convolution(layers, in, width, 1, here);
      add_convolution(layers, width, width, 3, here);
      add_convolution(layers, width, 4 * width, 1, here);
      if (block == 0) add_convolution(layers, in, 4 * width, 1, here);
      in = 4 * width;
    }
  }
  return layers;
}

}  // namespace

double Workload::parameters() const {
  double sum = 0;
  for (const Layer& layer : layers) sum += layer.parameters;
  return sum;
}

Workload resnet(int depth) {
  Workload workload{"ResNet-" + std::to_string(depth), residual_layers(depth, 224)};
  add_dense(workload.layers, 2048, 1000);
  return workload;
}

Workload vgg16() {
  Workload workload{"VGG-16", {}};
  const int widths[] = {64, 128, 256, 512, 512};
  const int counts[] = {2, 2, 3, 3, 3};
  double in = 3;
  for (int stage = 0; stage < 5; ++stage) {
    for (int k = 0; k < counts[stage]; ++k) {
      add_convolution(workload.layers, in, widths[stage], 3, 224 >> stage);
      in = widths[stage];
    }
  }
  add_dense(workload.layers, 512 * 7 * 7, 4096);
  add_dense(workload.layers, 4096, 4096);
  add_dense(workload.layers, 4096, 1000);
  return workload;
}

Workload bert_large() {
  constexpr double width = 1024, tokens = 128, vocabulary = 30522, positions = 512;
  Workload workload{"BERT-large", {}};
  // tables: no multiplications
  workload.layers.push_back({(vocabulary + positions + 2) * width, 0});
  for (int layer = 0; layer < 24; ++layer) {
    for (int k = 0; k < 4; ++k) add_dense(workload.layers, width, width, tokens);
    add_dense(workload.layers, width, 4 * width, tokens);
    add_dense(workload.layers, 4 * width, width, tokens);
  }
  // The scores over the vocabulary reuse the parameters of the table, so only their arithmetic
  // counts.
  workload.layers.push_back({0, 2 * width * vocabulary * tokens});
  return workload;
}

Workload mask_rcnn() {
  constexpr double side = 1024, regions = 512;
  Workload workload{"Mask R-CNN", residual_layers(50, side)};
  for (int level = 0; level < 4; ++level) {
    const double here = side / double(4 << level);
    add_convolution(workload.layers, double(256 << level), 256, 1, here);
    add_convolution(workload.layers, 256, 256, 3, here);
  }
  // head of the proposals, on all levels
  add_convolution(workload.layers, 256, 256, 3, side / 3.5);
  add_dense(workload.layers, 256 * 7 * 7, 1024, regions);
  add_dense(workload.layers, 1024, 1024, regions);
  add_dense(workload.layers, 1024, 5 * 81, regions);
  for (int k = 0; k < 4; ++k)
    add_convolution(workload.layers, 256, 256, 3, 14 * std::sqrt(regions / 4));
  add_convolution(workload.layers, 256, 256, 2, 28 * std::sqrt(regions / 4));
  return workload;
}

double largest_of(int n) { return n < 2 ? 0 : quantile_of_normal((n - 0.375) / (n + 0.25)); }

StepTimes step(const Workload& workload, const Cluster& cluster, const Overlap& overlap,
               const Chooser& chooser) {
  StepTimes times;
  times.compute = workload.compute_seconds;
  times.slowest = times.compute * overlap.jitter * largest_of(int(cluster.hosts.size()));
  if (cluster.hosts.size() < 2) return times;

  double flop = 0;
  for (const Layer& layer : workload.layers) flop += layer.flop;
  std::map<size_t, double> known;  // most buckets have the same size
  const auto reduce = [&](double bytes) {
    const auto whole = size_t(std::ceil(bytes));
    auto& seconds = known[whole];
    if (seconds == 0) seconds = allreduce_seconds(chooser(whole), whole, cluster);
    return seconds;
  };
  // The compute time of the slowest rank, for which all ranks wait.
  const double computing = times.compute + times.slowest;
  double now = computing * kForwardShare;  // time of the backward pass
  double free = 0;                         // end of the operation under way; one runs at a time
  double bucket = 0;
  const auto send = [&] {
    const double begins = std::max(now + overlap.cycle_seconds / 2, free);
    free = begins + reduce(bucket);
    bucket = 0;
  };
  for (auto layer = workload.layers.rbegin(); layer != workload.layers.rend(); ++layer) {
    now += computing * (1 - kForwardShare) * (flop > 0 ? layer->flop / flop : 0);
    bucket += layer->parameters * workload.gradient_bytes;
    // A large layer is split: its first part is reduced while the rest waits.
    while (bucket >= 2 * overlap.bucket_bytes) {
      const double rest = bucket - overlap.bucket_bytes;
      bucket = overlap.bucket_bytes;
      send();
      bucket = rest;
    }
    if (bucket >= overlap.bucket_bytes) send();
  }
  if (bucket > 0) send();
  times.exposed = std::max(0.0, free - computing);
  return times;
}

}  // namespace trainyard::collectives::projection
