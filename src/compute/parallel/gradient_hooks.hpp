// GradientHooks call a function when the backward pass adds to the gradient of a parameter.
//
// Threads: made and destroyed on one thread, while no backward pass is in progress; called on the
// thread of the backward pass. Errors: none. Lifetime: hooks that are destroyed are not called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "parallel/torch.hpp"

namespace trainyard::parallel {

class GradientHooks {
 public:
  using Callback = std::function<void(size_t parameter)>;

  // `before` runs before libtorch adds to the gradient, and may replace the tensor to which it
  // adds; it may be empty. `after` runs when it has added. A parameter used several times in one
  // pass gets one call: autograd adds the sum of its gradients once.
  // Requires: `parameters` are leaf tensors with requires_grad.
  GradientHooks(std::vector<at::Tensor> parameters, Callback before, Callback after);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  struct Hook {
    std::shared_ptr<torch::autograd::Node> accumulator;  // shared with libtorch's graphs
    uintptr_t after = 0;
    unsigned before = 0;
  };

  const std::vector<at::Tensor> parameters_;
  const bool has_before_;
  std::vector<Hook> hooks_;  // by parameter
};

}  // namespace trainyard::parallel
