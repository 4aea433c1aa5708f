// A multi-layer perceptron with one hidden layer, for classification:
//
//   hidden = relu(input @ hidden_weight + hidden_bias)      (batch, hidden)
//   scores = hidden @ class_weight + class_bias             (batch, classes)
//   loss   = cross entropy of softmax(scores)
//
// All parameters lie in one row, so that their gradient is one buffer that ranks can sum:
//
//   hidden_weight (inputs, hidden) | hidden_bias (hidden) | class_weight (hidden, classes) | class_bias
//   (classes)
//
// mlp_reference.hpp is the slow and obvious same.
//
// Gradients of many rows are summed *exactly*: every row's slope is first rounded to a whole multiple of
// slope_grain, and such numbers add up in a double without rounding. So a sum does not depend on the order of
// the rows, nor on which host computed which: one host and eight hosts get the same bits. Without it,
// rounding in another order turns some unit's input from just above 0 to just below, relu takes the other
// branch, and two equal trainings part for good.
//
// Threads: plain values; a Workspace is one thread's. Errors: none; what is Required is checked.
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

  size_t hidden_weight() const { return 0; }  // where each begins in the row of parameters
  size_t hidden_bias() const { return inputs * hidden; }
  size_t class_weight() const { return hidden_bias() + hidden; }
  size_t class_bias() const { return class_weight() + hidden * classes; }
  size_t parameters() const { return class_bias() + classes; }
  bool operator==(const Shape&) const = default;
};

// Weights normal with deviation sqrt(2 / fan-in) (He: keeps the size of signals through relu), biases 0.
// Equal seeds give equal parameters.
std::vector<float> initial_parameters(const Shape& shape, uint64_t seed);

// What a forward and backward pass needs in between, kept to save allocations.
struct Workspace {
  std::vector<float> hidden;        // (hidden)
  std::vector<float> scores;        // (classes): scores, then probabilities, then their gradient
  std::vector<float> hidden_slope;  // (hidden): gradient of the loss by hidden's inputs
};

// Far below what moves a float weight, yet sums stay exact up to 2^53 grains, that is 2^17: a batch of some
// ten thousand rows with slopes of size 10. Beyond that a sum is merely rounded.
inline constexpr double slope_grain = 0x1.0p-36;

struct RowLoss {
  float loss = 0;
  bool correct = false;
};

// Adds one row's gradient (not divided by anything) to `gradient`, exactly.
// Requires: sizes as in shape; 0 <= label < shape.classes.
RowLoss add_gradient(const Shape& shape, std::span<const float> parameters, std::span<const float> input,
                     int32_t label, std::span<double> gradient, Workspace& workspace);

// The class with the largest score; the first of equals.
int32_t predict(const Shape& shape, std::span<const float> parameters, std::span<const float> input,
                Workspace& workspace);

}  // namespace trainyard::train
