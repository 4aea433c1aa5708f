// Encodes, decodes and compares trained models. A model is stored in two files:
//
//   model.safetensors  The weights, in the public safetensors format: u64 length of the header
//                      (little-endian), the header as JSON {"NAME": {"dtype": "F32", "shape": [..],
//                      "data_offsets": [begin, end]}, ..}, then the numbers. Tensors: hidden.weight
//                      (inputs, hidden), hidden.bias (hidden), class.weight (hidden, classes),
//                      class.bias (classes), as in mlp.hpp.
//   model.json         Everything else: {"format": "trainyard-mlp", "version": 1, "inputs",
//                      "hidden", "classes", "input_scale", "image_width", "weights":
//                      "model.safetensors"}
//
// Threads: plain values; pure functions. Errors: corrupt, naming the file and the invalid field.
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
  float input_scale = 1;   // features are divided by it
  size_t image_width = 0;  // pixels per line if rows are images, else 0
  std::vector<float> parameters;
};

inline constexpr std::string_view kWeightsFile = "model.safetensors";
inline constexpr std::string_view kDescriptionFile = "model.json";
// Also the limits of the hyperparameter input_scale.
inline constexpr double kInputScaleMin = 1e-6, kInputScaleMax = 1e9;
// Header of the weights; four tensors need about 300 bytes.
inline constexpr size_t kHeaderBytesMax = 1 << 20;

std::string encode_weights(const Model& model);
std::string encode_description(const Model& model);
// Decodes a model. Compares the sizes in the description with the weights before it allocates
// anything.
Result<Model> decode_model(std::string_view description, std::string_view weights);

// Write and read the two files in `folder`.
Result<void> save_model(const Model& model, const std::string& folder);
Result<Model> load_model(const std::string& folder);

// The tensors of a model and their position in the vector of parameters.
struct Tensor {
  std::string name;
  std::vector<size_t> shape;
  size_t begin;  // in the vector of parameters
  size_t size;
};
std::vector<Tensor> tensors(const Shape& shape);

// The difference between the weights of two models.
struct Difference {
  // The largest |a - b|, relative to the size of its tensor (root mean square over both models). It
  // is not relative to the weight itself, since any rounding of a weight near 0 would look large.
  double relative = 0;
  double absolute = 0;
  std::string tensor;  // where `relative` was found
};
// Errors: invalid, if the shapes of the models differ.
Result<Difference> compare(const Model& a, const Model& b);

}  // namespace trainyard::train
