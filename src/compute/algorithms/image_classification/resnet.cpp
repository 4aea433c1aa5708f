#include "algorithms/image_classification/resnet.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "base/fnv.hpp"
#include "base/random.hpp"

namespace trainyard::algorithms {
namespace {

constexpr double kEpsilon = 1e-5;          // added to variances before division
constexpr double kStatisticsWeight = 0.1;  // the weight of one step in the running statistics
constexpr int kSmallSideMax = 32;          // pixels; for the CIFAR networks
constexpr int64_t kExpansion = 4;          // output channels of a bottleneck, relative to its width

struct Depth {
  int64_t layers;
  std::vector<int64_t> blocks;  // of each stage
  bool bottleneck;
};

const std::vector<Depth>& depths() {
  static const std::vector<Depth> table = {
      {18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
      {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true}, {200, {3, 24, 36, 3}, true},
      {20, {3, 3, 3}, false},     {32, {5, 5, 5}, false},     {44, {7, 7, 7}, false},
      {56, {9, 9, 9}, false},     {110, {18, 18, 18}, false},
  };
  return table;
}

const Depth* depth_of(int64_t layers) {
  const auto found = std::ranges::find(depths(), layers, &Depth::layers);
  return found == depths().end() ? nullptr : &*found;
}

at::Tensor activated(at::Tensor values) { return at::relu_(values); }  // in place

bool is_small(const Depth& depth) { return depth.blocks.size() == 3; }

}  // namespace

Result<void> check_layers(int64_t num_layers) {
  if (depth_of(num_layers)) return ok();
  std::string list;
  for (const Depth& each : depths())
    list += (list.empty() ? "" : ", ") + std::to_string(each.layers);
  return invalid(std::to_string(num_layers) + " is not one of [" + list + "]");
}

Result<void> check_shape(int64_t num_layers, const ImageShape& shape) {
  TRY(check_layers(num_layers).in("hyperparameter num_layers"));
  const bool small = is_small(*depth_of(num_layers));
  if (small && std::max(shape.height, shape.width) > kSmallSideMax)
    return invalid("hyperparameter num_layers: " + std::to_string(num_layers) +
                   " layers are for images of at most 32 pixels a side, but image_shape is " +
                   to_string(shape) + ": use 18, 34, 50, 101, 152 or 200");
  if (!small && std::min(shape.height, shape.width) < kSmallSideMax)
    return invalid("hyperparameter num_layers: " + std::to_string(num_layers) +
                   " layers are for images of at least 32 pixels a side, but image_shape is " +
                   to_string(shape) + ": use 20, 32, 44, 56 or 110");
  return ok();
}

ResNet::ResNet(int64_t num_layers, const ImageShape& shape, int64_t classes, uint64_t seed)
    : seed_(seed) {
  const Depth* depth = depth_of(num_layers);
  CHECK(depth && check_shape(num_layers, shape), "a network with this number of layers exists");
  pools_ = !is_small(*depth);
  channels_ = pools_ ? 64 : 16;
  stem_ = pools_ ? add_unit("conv1", "bn1", shape.channels, channels_, 7, 2)
                 : add_unit("conv1", "bn1", shape.channels, channels_, 3, 1);
  int64_t width = channels_;
  for (size_t stage = 0; stage < depth->blocks.size(); ++stage, width *= 2)
    add_stage("layer" + std::to_string(stage + 1), depth->blocks[stage], width, stage == 0 ? 1 : 2,
              depth->bottleneck);
  class_weight_ =
      add_parameter("fc.weight", normal({classes, channels_}, 1 / std::sqrt(double(channels_))));
  class_bias_ = add_parameter("fc.bias", at::zeros({classes}, at::kFloat));
  make_statistics();
}

void ResNet::add_stage(const std::string& name, int64_t blocks, int64_t width, int64_t stride,
                       bool bottleneck) {
  for (int64_t i = 0; i < blocks; ++i)
    add_block(name + "." + std::to_string(i), width, i == 0 ? stride : 1, bottleneck);
}

void ResNet::add_block(const std::string& name, int64_t width, int64_t stride, bool bottleneck) {
  Block block;
  const int64_t in = channels_;
  const int64_t out = bottleneck ? kExpansion * width : width;
  const auto add = [&](int number, int64_t from, int64_t to, int64_t kernel, int64_t step) {
    const std::string suffix = std::to_string(number);
    block.units.push_back(
        add_unit(name + ".conv" + suffix, name + ".bn" + suffix, from, to, kernel, step));
  };
  if (bottleneck) {
    add(1, in, width, 1, 1);
    add(2, width, width, 3, stride);
    add(3, width, out, 1, 1);
  } else {
    add(1, in, width, 3, stride);
    add(2, width, out, 3, 1);
  }
  if (stride != 1 || in != out)
    block.shortcut = add_unit(name + ".downsample.0", name + ".downsample.1", in, out, 1, stride);
  channels_ = out;
  blocks_.push_back(std::move(block));
}

ResNet::Unit ResNet::add_unit(const std::string& convolution, const std::string& normalisation,
                              int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  Unit unit;
  const double deviation = std::sqrt(2.0 / double(out * kernel * kernel));
  unit.convolution = {
      add_parameter(convolution + ".weight", normal({out, in, kernel, kernel}, deviation)), stride,
      kernel / 2};
  unit.normalisation.weight = add_parameter(normalisation + ".weight", at::ones({out}, at::kFloat));
  unit.normalisation.bias = add_parameter(normalisation + ".bias", at::zeros({out}, at::kFloat));
  unit.normalisation.begin = statistics_;
  unit.normalisation.channels = out;
  statistics_ += 2 * out;
  normalisation_names_.push_back(normalisation);
  normalisations_.push_back(unit.normalisation);
  return unit;
}

at::Tensor ResNet::add_parameter(const std::string& name, at::Tensor values) {
  values.requires_grad_(true);
  parameters_.push_back({name, values});
  return values;
}

// Returns normally distributed numbers, by the Box-Muller transform.
at::Tensor ResNet::normal(at::IntArrayRef sizes, double deviation) {
  SeededRandom random(fnv1a_step(fnv1a_step(kFnvBasis, seed_), parameters_.size()));
  at::Tensor values = at::empty(sizes, at::kFloat);
  auto* numbers = static_cast<float*>(values.data_ptr());
  constexpr double scale = 1.0 / 9007199254740992.0;  // 2^-53
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double radius = std::sqrt(-2 * std::log((double(random.next() >> 11) + 1) * scale));
    const double angle = 2 * std::numbers::pi * double(random.next() >> 11) * scale;
    numbers[i] = float(deviation * radius * std::cos(angle));
  }
  return values;
}

void ResNet::make_statistics() {
  running_ = at::zeros({statistics_}, at::kFloat);
  collected_ = at::zeros({statistics_}, at::kFloat);
  for (const Normalisation& each : normalisations_)
    running_.narrow(0, each.begin + each.channels, each.channels).fill_(1);
}

std::vector<parallel::NamedTensor> ResNet::stored() const {
  std::vector<parallel::NamedTensor> all = parameters_;
  for (size_t i = 0; i < normalisations_.size(); ++i) {
    const Normalisation& part = normalisations_[i];
    all.push_back(
        {normalisation_names_[i] + ".running_mean", running_.narrow(0, part.begin, part.channels)});
    all.push_back({normalisation_names_[i] + ".running_var",
                   running_.narrow(0, part.begin + part.channels, part.channels)});
  }
  return all;
}

std::span<float> ResNet::collected() {
  return {static_cast<float*>(collected_.data_ptr()), size_t(statistics_)};
}

void ResNet::apply_statistics(int64_t passes) {
  const at::NoGradGuard no_gradients;
  running_.mul_(1 - kStatisticsWeight).add_(collected_, kStatisticsWeight / double(passes));
  collected_.zero_();
}

at::Tensor ResNet::normalise(const Normalisation& part, const at::Tensor& input, bool training) {
  if (!training)
    return at::batch_norm(
        input, part.weight, part.bias, running_.narrow(0, part.begin, part.channels),
        running_.narrow(0, part.begin + part.channels, part.channels), false, 0, kEpsilon, false);
  auto [output, mean, inverse_deviation] =
      at::native_batch_norm(input, part.weight, part.bias, {}, {}, true, 0, kEpsilon);
  const at::NoGradGuard no_gradients;
  const auto count = double(input.numel() / part.channels);
  // Running variances are unbiased.
  const at::Tensor variance =
      inverse_deviation.detach().pow(-2).sub_(kEpsilon).mul_(count / std::max(1.0, count - 1));
  collected_.narrow(0, part.begin, part.channels).add_(mean.detach());
  collected_.narrow(0, part.begin + part.channels, part.channels).add_(variance);
  return output;
}

at::Tensor ResNet::apply(const Unit& unit, const at::Tensor& input, bool training) {
  const auto& [weight, stride, padding] = unit.convolution;
  return normalise(unit.normalisation, at::conv2d(input, weight, {}, stride, padding), training);
}

at::Tensor ResNet::forward(const at::Tensor& images, bool training) {
  at::Tensor values = activated(apply(stem_, images, training));
  if (pools_) values = at::max_pool2d(values, 3, 2, 1);
  for (const Block& block : blocks_) {
    at::Tensor inner = values;
    for (size_t i = 0; i < block.units.size(); ++i) {
      inner = apply(block.units[i], inner, training);
      if (i + 1 < block.units.size()) inner = activated(inner);
    }
    const at::Tensor shortcut = block.shortcut ? apply(*block.shortcut, values, training) : values;
    values = activated(inner + shortcut);
  }
  return at::linear(values.mean({2, 3}), class_weight_, class_bias_);
}

}  // namespace trainyard::algorithms
