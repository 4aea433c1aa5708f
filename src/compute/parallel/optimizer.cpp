#include "parallel/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/enum_table.hpp"

namespace trainyard::parallel {
namespace {

constexpr EnumTable<Method> kMethods{"optimizer",
                                     {{Method::sgd, "sgd"},
                                      {Method::nag, "nag"},
                                      {Method::adam, "adam"},
                                      {Method::rmsprop, "rmsprop"},
                                      {Method::adamw, "adamw"},
                                      {Method::lars, "lars"},
                                      {Method::lamb, "lamb"}}};

bool has_momentum(Method method) { return method != Method::rmsprop; }
bool has_square(Method method) {
  return method == Method::adam || method == Method::adamw || method == Method::lamb ||
         method == Method::rmsprop;
}

std::vector<OptimizedPart> whole(std::vector<NamedTensor> parameters) {
  std::vector<OptimizedPart> parts;
  for (NamedTensor& each : parameters) {
    const bool decays = each.tensor.dim() > 1;
    parts.push_back({std::move(each.name), std::move(each.tensor), {}, parts.size(), decays});
  }
  return parts;
}

}  // namespace

std::string_view to_string(Method method) { return kMethods.text(method); }
Result<Method> parse_method(std::string_view text) { return kMethods.parse(text); }
int numbers_held(Method method) { return int(has_momentum(method)) + int(has_square(method)); }

double sum_of_squares(const at::Tensor& values) {
  CHECK(values.is_contiguous() && values.scalar_type() == at::kFloat, "values of f32 in order");
  constexpr int64_t lanes = 8;  // independent sums, which the processor computes in parallel
  double sums[lanes] = {};
  const auto* numbers = static_cast<const float*>(values.data_ptr());
  for (int64_t i = 0; i < values.numel(); ++i) sums[i % lanes] += double(numbers[i]) * numbers[i];
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

Optimizer::Optimizer(OptimizerSettings settings, std::vector<NamedTensor> parameters)
    : Optimizer(settings, whole(parameters), parameters.size()) {}

Optimizer::Optimizer(OptimizerSettings settings, std::vector<OptimizedPart> parts,
                     size_t parameters)
    : settings_(settings), parts_(std::move(parts)), parameters_(parameters) {
  for (const OptimizedPart& each : parts_) {
    CHECK(each.parameter < parameters_, "the parameter of a part exists");
    const auto zeros = [&] { return at::zeros_like(each.weights.detach()); };
    if (has_momentum(settings_.method)) momenta_.push_back(zeros());
    if (has_square(settings_.method)) squares_.push_back(zeros());
  }
}

void Optimizer::step(double rate, double gradient_scale) {
  const auto done = step(rate, gradient_scale, [](std::span<double>) { return ok(); });
  CHECK(done, "a sum of one rank cannot fail");
}

Result<void> Optimizer::step(double rate, double gradient_scale, const SumOverRanks& sum) {
  const at::NoGradGuard no_gradients;
  const double scale = TRY(clipped_scale(gradient_scale, sum));
  if (uses_norms()) return step_by_norms(rate, scale, sum);
  ++steps_done_;
  for (size_t i = 0; i < parts_.size(); ++i) update(i, rate, scale);
  return ok();
}

const at::Tensor& Optimizer::gradient_of(const OptimizedPart& part) const {
  const at::Tensor& gradient = part.gradient.defined() ? part.gradient : part.weights.grad();
  CHECK(gradient.defined(), "every parameter has a gradient");
  return gradient;
}

Result<double> Optimizer::clipped_scale(double scale, const SumOverRanks& sum) const {
  if (settings_.clip_norm <= 0) return scale;
  double squares = 0;
  for (const OptimizedPart& each : parts_) squares += sum_of_squares(gradient_of(each));
  TRY(sum({&squares, 1}));
  const double norm = std::abs(scale) * std::sqrt(squares);
  return norm > settings_.clip_norm ? scale * settings_.clip_norm / norm : scale;
}

at::Tensor Optimizer::scaled_gradient(const OptimizedPart& part, double scale) const {
  at::Tensor gradient = gradient_of(part) * scale;
  const bool later = settings_.method == Method::adamw || settings_.method == Method::lamb;
  if (settings_.weight_decay != 0 && part.decays && !later)
    gradient.add_(part.weights, settings_.weight_decay);
  return gradient;
}

at::Tensor Optimizer::adam_width(size_t index, const at::Tensor& gradient) {
  momenta_[index].mul_(settings_.beta_1).add_(gradient, 1 - settings_.beta_1);
  squares_[index].mul_(settings_.beta_2).addcmul_(gradient, gradient, 1 - settings_.beta_2);
  const double second = 1 - std::pow(settings_.beta_2, double(steps_done_));
  return squares_[index].div(second).sqrt_().add_(settings_.epsilon);
}

void Optimizer::update(size_t index, double rate, double scale) {
  const OptimizedPart& part = parts_[index];
  at::Tensor weights = part.weights;
  const at::Tensor gradient = scaled_gradient(part, scale);
  switch (settings_.method) {
    case Method::sgd:
      momenta_[index].mul_(settings_.momentum).add_(gradient);
      weights.add_(momenta_[index], -rate);
      return;
    case Method::nag:
      momenta_[index].mul_(settings_.momentum).add_(gradient);
      weights.add_(gradient, -rate).add_(momenta_[index], -rate * settings_.momentum);
      return;
    case Method::adamw:
      if (settings_.weight_decay != 0 && part.decays)
        weights.mul_(1 - rate * settings_.weight_decay);
      [[fallthrough]];
    case Method::adam: {
      const at::Tensor width = adam_width(index, gradient);
      const double first = 1 - std::pow(settings_.beta_1, double(steps_done_));
      weights.addcdiv_(momenta_[index], width, -rate / first);
      return;
    }
    case Method::rmsprop:
      squares_[index].mul_(settings_.gamma).addcmul_(gradient, gradient, 1 - settings_.gamma);
      weights.addcdiv_(gradient, squares_[index].sqrt().add_(settings_.epsilon), -rate);
      return;
    case Method::lars:
    case Method::lamb:
      CHECK(false, "lars and lamb step by norms");
  }
}

// Squares has the sums of squares of the weights, by parameter, and then those of the steps.
double Optimizer::trust(const OptimizedPart& part, std::span<const double> squares) const {
  const double weights = std::sqrt(squares[part.parameter]);
  const double step = std::sqrt(squares[parameters_ + part.parameter]);
  if (!part.decays || weights == 0 || step == 0) return 1;
  if (settings_.method == Method::lamb) return weights / step;
  return settings_.trust_coefficient * weights / (step + settings_.weight_decay * weights);
}

Result<void> Optimizer::step_by_norms(double rate, double scale, const SumOverRanks& sum) {
  const bool lamb = settings_.method == Method::lamb;
  ++steps_done_;
  std::vector<double> squares(2 * parameters_);
  std::vector<at::Tensor> directions;  // the update directions, for LAMB only
  for (size_t i = 0; i < parts_.size(); ++i) {
    const OptimizedPart& part = parts_[i];
    squares[part.parameter] += sum_of_squares(part.weights);
    if (!lamb) {
      squares[parameters_ + part.parameter] += scale * scale * sum_of_squares(gradient_of(part));
      continue;
    }
    const at::Tensor width = adam_width(i, scaled_gradient(part, scale));
    const double first = 1 - std::pow(settings_.beta_1, double(steps_done_));
    at::Tensor direction = momenta_[i].div(first).div_(width);
    if (settings_.weight_decay != 0 && part.decays)
      direction.add_(part.weights, settings_.weight_decay);
    squares[parameters_ + part.parameter] += sum_of_squares(direction);
    directions.push_back(std::move(direction));
  }
  TRY(sum(squares));
  for (size_t i = 0; i < parts_.size(); ++i) {
    at::Tensor weights = parts_[i].weights;
    const double step = rate * trust(parts_[i], squares);
    if (lamb) {
      weights.add_(directions[i], -step);
    } else {
      momenta_[i].mul_(settings_.momentum).add_(scaled_gradient(parts_[i], scale), step);
      weights.sub_(momenta_[i]);
    }
  }
  return ok();
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (!momenta_.empty()) state.push_back({"momentum." + parts_[i].name, momenta_[i]});
    if (!squares_.empty()) state.push_back({"square." + parts_[i].name, squares_[i]});
  }
  return state;
}

}  // namespace trainyard::parallel
