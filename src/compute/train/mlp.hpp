// Computes a multi-layer perceptron with one hidden layer, for classification, and its gradient:
//
//   hidden = relu(input @ hidden_weight + hidden_bias)      (batch, hidden)
//   scores = hidden @ class_weight + class_bias             (batch, classes)
//   loss   = cross entropy of softmax(scores)
//
// All parameters are one vector, so that their gradient is one buffer that ranks can sum:
//
//   hidden_weight (inputs, hidden) | hidden_bias (hidden) |
//   class_weight (hidden, classes) | class_bias (classes)
//
// mlp_reference.hpp is the slow and obvious implementation.
//
// Gradients of many rows are summed *exactly*: each element of a row's gradient is first rounded to
// a multiple of kSlopeGrain, and doubles add such numbers without rounding. So a sum does not
// depend on the order of the rows, nor on which host computed which row: one host and eight hosts
// get the same bits. With ordinary rounding, another order could turn the input of a hidden unit
// from just above 0 to just below; relu would take the other branch, and two equal trainings would
// diverge.
//
// Threads: plain values; each thread needs its own Workspace. Errors: none; requirements are
// checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trainyard::train {

struct Shape {
  size_t inputs = 0;
  size_t hidden = 0;
  size_t classes = 0;

  // The offset of each in the vector of parameters.
  size_t hidden_weight() const { return 0; }
  size_t hidden_bias() const { return inputs * hidden; }
  size_t class_weight() const { return hidden_bias() + hidden; }
  size_t class_bias() const { return class_weight() + hidden * classes; }
  size_t parameters() const { return class_bias() + classes; }
  bool operator==(const Shape&) const = default;
};

// Returns normally distributed weights with deviation sqrt(2 / fan-in) (He: keeps the size of
// signals through relu), and biases of 0. Equal seeds give equal parameters.
std::vector<float> initial_parameters(const Shape& shape, uint64_t seed);

// A Workspace stores the intermediate values of a forward and backward pass, to save allocations.
struct Workspace {
  std::vector<float> hidden;  // (hidden)
  std::vector<float> scores;  // (classes): scores, then probabilities, then their gradient
  // (hidden): gradient of the loss with respect to the inputs of the hidden units
  std::vector<float> hidden_slope;
};

// Much smaller than the resolution of a float weight. Sums are exact up to 2^53 grains, which is
// 2^17: a batch of about ten thousand rows with gradients of size 10. Larger sums are rounded.
inline constexpr double kSlopeGrain = 0x1.0p-36;

struct RowLoss {
  float loss = 0;
  bool correct = false;
};

// Adds the gradient of one row, not normalised, to `gradient`, exactly.
// Requires: sizes as in shape; 0 <= label < shape.classes.
RowLoss add_gradient(const Shape& shape, std::span<const float> parameters,
                     std::span<const float> input, int32_t label, std::span<double> gradient,
                     Workspace& workspace);

// Returns the class with the largest score; the first one if several are equal.
int32_t predict(const Shape& shape, std::span<const float> parameters, std::span<const float> input,
                Workspace& workspace);

}  // namespace trainyard::train
