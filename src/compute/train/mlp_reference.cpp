#include "train/mlp_reference.hpp"

#include <cmath>

namespace trainyard::train::reference {
namespace {

struct Pass {
  std::vector<double> sums;           // (hidden), before relu
  std::vector<double> hidden;         // (hidden)
  std::vector<double> probabilities;  // (classes)
};

Pass forward(const Shape& shape, const std::vector<double>& parameters,
             const std::vector<double>& input) {
  Pass pass;
  for (size_t j = 0; j < shape.hidden; ++j) {
    double sum = parameters[shape.hidden_bias() + j];
    for (size_t i = 0; i < shape.inputs; ++i) {
      sum += input[i] * parameters[shape.hidden_weight() + i * shape.hidden + j];
    }
    pass.sums.push_back(sum);
    pass.hidden.push_back(sum > 0 ? sum : 0);
  }
  double total = 0;
  for (size_t c = 0; c < shape.classes; ++c) {
    double score = parameters[shape.class_bias() + c];
    for (size_t j = 0; j < shape.hidden; ++j) {
      score += pass.hidden[j] * parameters[shape.class_weight() + j * shape.classes + c];
    }
    pass.probabilities.push_back(std::exp(score));
    total += pass.probabilities.back();
  }
  for (double& probability : pass.probabilities) probability /= total;
  return pass;
}

}  // namespace

double loss(const Shape& shape, const std::vector<double>& parameters,
            const std::vector<double>& input, int32_t label) {
  return -std::log(forward(shape, parameters, input).probabilities[size_t(label)]);
}

std::vector<double> gradient(const Shape& shape, const std::vector<double>& parameters,
                             const std::vector<double>& input, int32_t label) {
  const Pass pass = forward(shape, parameters, input);
  std::vector<double> slopes(shape.parameters());
  for (size_t c = 0; c < shape.classes; ++c) {
    const double score_slope = pass.probabilities[c] - (size_t(label) == c ? 1 : 0);
    slopes[shape.class_bias() + c] = score_slope;
    for (size_t j = 0; j < shape.hidden; ++j) {
      slopes[shape.class_weight() + j * shape.classes + c] = score_slope * pass.hidden[j];
    }
  }
  for (size_t j = 0; j < shape.hidden; ++j) {
    double slope = 0;
    for (size_t c = 0; c < shape.classes; ++c) {
      slope +=
          slopes[shape.class_bias() + c] * parameters[shape.class_weight() + j * shape.classes + c];
    }
    if (pass.sums[j] <= 0) slope = 0;
    slopes[shape.hidden_bias() + j] = slope;
    for (size_t i = 0; i < shape.inputs; ++i) {
      slopes[shape.hidden_weight() + i * shape.hidden + j] = slope * input[i];
    }
  }
  return slopes;
}

}  // namespace trainyard::train::reference
