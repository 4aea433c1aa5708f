#include "parallel/optimizer.hpp"

#include <cmath>
#include <utility>

#include "base/enum_table.hpp"

namespace trainyard::parallel {
namespace {

constexpr EnumTable<Method> kMethods{"optimizer",
                                     {{Method::sgd, "sgd"},
                                      {Method::nag, "nag"},
                                      {Method::adam, "adam"},
                                      {Method::rmsprop, "rmsprop"}}};

}  // namespace

std::string_view to_string(Method method) { return kMethods.text(method); }
Result<Method> parse_method(std::string_view text) { return kMethods.parse(text); }

Optimizer::Optimizer(OptimizerSettings settings, std::vector<NamedTensor> parameters)
    : settings_(settings), parameters_(std::move(parameters)) {
  for (const NamedTensor& each : parameters_) {
    const at::Tensor zeros = at::zeros_like(each.tensor.detach());
    if (settings_.method != Method::rmsprop) momenta_.push_back(zeros.clone());
    if (settings_.method == Method::adam || settings_.method == Method::rmsprop)
      squares_.push_back(zeros.clone());
  }
}

void Optimizer::step(double rate, double gradient_scale) {
  const at::NoGradGuard no_gradients;
  ++steps_done_;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].tensor;
    CHECK(parameter.grad().defined(), "every parameter has a gradient");
    at::Tensor gradient = parameter.grad() * gradient_scale;
    if (settings_.weight_decay != 0 && parameter.dim() > 1)
      gradient.add_(parameter, settings_.weight_decay);
    update(i, gradient, rate);
  }
}

void Optimizer::update(size_t index, const at::Tensor& gradient, double rate) {
  at::Tensor parameter = parameters_[index].tensor;
  switch (settings_.method) {
    case Method::sgd:
      momenta_[index].mul_(settings_.momentum).add_(gradient);
      parameter.add_(momenta_[index], -rate);
      return;
    case Method::nag:
      momenta_[index].mul_(settings_.momentum).add_(gradient);
      parameter.add_(gradient, -rate).add_(momenta_[index], -rate * settings_.momentum);
      return;
    case Method::adam: {
      momenta_[index].mul_(settings_.beta_1).add_(gradient, 1 - settings_.beta_1);
      squares_[index].mul_(settings_.beta_2).addcmul_(gradient, gradient, 1 - settings_.beta_2);
      const double first = 1 - std::pow(settings_.beta_1, double(steps_done_));
      const double second = 1 - std::pow(settings_.beta_2, double(steps_done_));
      const at::Tensor width = squares_[index].div(second).sqrt_().add_(settings_.epsilon);
      parameter.addcdiv_(momenta_[index], width, -rate / first);
      return;
    }
    case Method::rmsprop:
      squares_[index].mul_(settings_.gamma).addcmul_(gradient, gradient, 1 - settings_.gamma);
      parameter.addcdiv_(gradient, squares_[index].sqrt().add_(settings_.epsilon), -rate);
      return;
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!momenta_.empty()) state.push_back({"momentum." + parameters_[i].name, momenta_[i]});
    if (!squares_.empty()) state.push_back({"square." + parameters_[i].name, squares_[i]});
  }
  return state;
}

}  // namespace trainyard::parallel
