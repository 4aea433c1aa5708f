// A trained model: what it computes, and its two files.
//
//   model.safetensors  the weights, in the public safetensors layout: u64 length of the header
//   (little-endian), the
//                      header as JSON {"NAME": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]},
//                      ..}, then the numbers. Tensors: hidden.weight (inputs, hidden), hidden.bias (hidden),
//                      class.weight (hidden, classes), class.bias (classes), as in mlp.hpp.
//   model.json         everything else: {"format": "trainyard-mlp", "version": 1, "inputs", "hidden",
//   "classes",
//                      "input_scale", "image_width", "weights": "model.safetensors"}
//
// Threads: plain values; pure functions. Errors: corrupt, naming the file and what is wrong in it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "train/mlp.hpp"

namespace trainyard::train {

struct Model {
  Shape shape;
  float input_scale = 1;   // features are divided by it first
  size_t image_width = 0;  // pixels a line, where rows are images; else 0
  std::vector<float> parameters;
};

inline constexpr std::string_view kWeightsFile = "model.safetensors";
inline constexpr std::string_view kDescriptionFile = "model.json";
// As the hyperparameter's.
inline constexpr double input_scale_min = 1e-6, input_scale_max = 1e9;
inline constexpr size_t header_bytes_max = 1 << 20;  // of the weights' header; four tensors need some 300

std::string encode_weights(const Model& model);
std::string encode_description(const Model& model);
// Limits: what the description says is compared with the weights; nothing is allocated on a file's word
// alone.
Result<Model> decode_model(std::string_view description, std::string_view weights);

// The two files in `folder`.
Result<void> save_model(const Model& model, const std::string& folder);
Result<Model> load_model(const std::string& folder);

// What the row of parameters is made of: the model's tensors by name.
struct Tensor {
  std::string name;
  std::vector<size_t> shape;
  size_t begin;  // in the row of parameters
  size_t size;
};
std::vector<Tensor> tensors(const Shape& shape);

// How far two models' weights lie apart.
struct Difference {
  // The largest of all |a - b|, each relative to the size of its tensor (root of the mean square over both
  // models). Not to the weight itself: a weight that happens to be near 0 would make any rounding look large.
  double relative = 0;
  double absolute = 0;
  std::string tensor;  // where `relative` was found
};
// Errors: invalid, when the models are not of the same shape.
Result<Difference> compare(const Model& a, const Model& b);

}  // namespace trainyard::train
