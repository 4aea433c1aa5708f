#include "parallel/gradient_hooks.hpp"

#include <utility>

namespace trainyard::parallel {
namespace {

using torch::autograd::variable_list;

// Libtorch calls the hook after it has added to a gradient.
struct AfterHook final : torch::autograd::FunctionPostHook {
  explicit AfterHook(std::function<void()> after) : after(std::move(after)) {}
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    after();
    return outputs;
  }
  std::function<void()> after;
};

}  // namespace

GradientHooks::GradientHooks(std::vector<at::Tensor> parameters, Callback before, Callback after)
    : parameters_(std::move(parameters)), has_before_(before != nullptr) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Hook hook;
    if (has_before_)
      hook.before =
          parameters_[i].register_hook([before, i](const at::TensorBase&) -> void { before(i); });
    hook.accumulator = torch::autograd::impl::grad_accumulator(parameters_[i]);
    hook.after =
        hook.accumulator->add_post_hook(std::make_unique<AfterHook>([after, i] { after(i); }));
    hooks_.push_back(std::move(hook));
  }
}

GradientHooks::~GradientHooks() {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    if (has_before_) parameters_[i].remove_hook(hooks_[i].before);
    hooks_[i].accumulator->del_post_hook(hooks_[i].after);
  }
}

}  // namespace trainyard::parallel
