// A ResNet classifies images: the residual networks of He et al. 2015.
//
//   num_layers 18, 34           basic blocks, for sides of 32 pixels and more (ImageNet)
//   num_layers 50, 101, 152, 200   bottleneck blocks; the stride is in their 3 x 3 convolution
//   num_layers 20, 32, 44, 56, 110   three stages of 16, 32, 64 channels, for sides up to 32 (CIFAR)
//
// Tensors have the names of torchvision's models ("layer1.0.conv1.weight"), so weights of the same
// architecture can be exchanged. Shortcuts that change the shape are 1 x 1 convolutions.
//
// Batch normalisation uses the mean and the variance of the images of one forward pass. The running
// statistics are updated once per step, by the average over all passes on all ranks, so they are
// equal on every rank.
//
// Threads: confined to one at a time. Errors: invalid, for shapes that no network supports.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "algorithms/image_classification/image_shape.hpp"
#include "base/result.hpp"
#include "parallel/stored_tensors.hpp"
#include "parallel/torch.hpp"

namespace trainyard::algorithms {

Result<void> check_layers(int64_t num_layers);
Result<void> check_shape(int64_t num_layers, const ImageShape& shape);

class ResNet {
 public:
  // Makes a network with random parameters; equal seeds give equal parameters.
  // Requires: check_shape(num_layers, shape); classes >= 2.
  ResNet(int64_t num_layers, const ImageShape& shape, int64_t classes, uint64_t seed);

  // Returns the logits (count, classes) of images (count, channels, height, width). When training,
  // adds the means and variances of the images to collected().
  at::Tensor forward(const at::Tensor& images, bool training);

  const std::vector<parallel::NamedTensor>& parameters() const { return parameters_; }
  // Returns the tensors of a model file: parameters, then running means and variances.
  std::vector<parallel::NamedTensor> stored() const;

  // Returns the sums over the forward passes since the last apply_statistics(). The caller sums
  // them over the ranks.
  std::span<float> collected();
  // Updates the running statistics with the collected sums divided by `passes`, and clears the
  // sums.
  void apply_statistics(int64_t passes);

 private:
  struct Convolution {
    at::Tensor weight;
    int64_t stride = 1, padding = 0;
  };
  struct Normalisation {
    at::Tensor weight, bias;
    int64_t begin = 0;  // index of its means in the statistics; the variances follow
    int64_t channels = 0;
  };
  struct Unit {
    Convolution convolution;
    Normalisation normalisation;
  };
  struct Block {
    std::vector<Unit> units;
    std::optional<Unit> shortcut;
  };

  void add_stage(const std::string& name, int64_t blocks, int64_t width, int64_t stride,
                 bool bottleneck);
  void add_block(const std::string& name, int64_t width, int64_t stride, bool bottleneck);
  Unit add_unit(const std::string& convolution, const std::string& normalisation, int64_t in,
                int64_t out, int64_t kernel, int64_t stride);
  at::Tensor add_parameter(const std::string& name, at::Tensor values);
  at::Tensor normal(at::IntArrayRef sizes, double deviation);
  void make_statistics();
  at::Tensor apply(const Unit& unit, const at::Tensor& input, bool training);
  at::Tensor normalise(const Normalisation& part, const at::Tensor& input, bool training);

  uint64_t seed_;
  int64_t channels_ = 0;  // channels after the last block that was added
  bool pools_ = false;    // the network pools after the first convolution
  Unit stem_;
  std::vector<Block> blocks_;
  at::Tensor class_weight_, class_bias_;
  std::vector<parallel::NamedTensor> parameters_;
  std::vector<std::string> normalisation_names_;
  std::vector<Normalisation> normalisations_;
  int64_t statistics_ = 0;  // how many numbers running_ has
  at::Tensor running_;      // means and variances of all normalisations
  at::Tensor collected_;
};

}  // namespace trainyard::algorithms
