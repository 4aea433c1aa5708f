#include "parallel/pipeline.hpp"

#include <algorithm>
#include <string>

#include "parallel/flat_memory.hpp"

namespace trainyard::parallel {

Pipeline::Pipeline(collectives::Group& activations, collectives::Group& gradients,
                   PipelineSettings settings)
    : activations_(activations), gradients_(gradients), settings_(std::move(settings)) {
  CHECK(activations_.size() == gradients_.size() && activations_.rank() == gradients_.rank(),
        "both groups have the same ranks");
}

Result<double> Pipeline::run(const Forward& forward, const AfterBackward& after_backward) {
  double loss = 0;
  Result<void> result = run_operations(forward, after_backward, loss);
  if (!result) {
    activations_.abandon(result.error().message);
    gradients_.abandon(result.error().message);
  }
  auto sent = wait_for_sends(true);
  held_.clear();
  TRY(std::move(result));
  TRY(std::move(sent));
  return loss;
}

Result<void> Pipeline::run_operations(const Forward& forward, const AfterBackward& after_backward,
                                      double& loss) {
  for (const PipelineOperation& each : plan_pipeline(
           settings_.schedule, activations_.size(), activations_.rank(), settings_.micro_batches)) {
    TRY(wait_for_sends(false));
    if (each.forward) {
      TRY(run_forward(each.micro_batch, forward, loss));
      most_held_ = std::max(most_held_, held_.size());
    } else {
      TRY(run_backward(each.micro_batch));
      if (after_backward) TRY(after_backward());
    }
  }
  return ok();
}

Result<void> Pipeline::run_forward(int micro_batch, const Forward& forward, double& loss) {
  Activations& held = held_[micro_batch];
  if (!is_first()) {
    held.input =
        TRY(receive(activations_, activations_.rank() - 1, settings_.input_sizes, "activations"));
    held.input.requires_grad_(true);
  }
  held.output = forward(held.input, micro_batch);
  if (is_last()) {
    loss += held.output.item().toDouble();
  } else {
    send(activations_, activations_.rank() + 1, held.output, "activations");
  }
  return ok();
}

Result<void> Pipeline::run_backward(int micro_batch) {
  Activations held = std::move(held_.at(micro_batch));
  held_.erase(micro_batch);
  if (is_last()) {
    held.output.backward();
  } else {
    held.output.backward(
        TRY(receive(gradients_, gradients_.rank() + 1, held.output.sizes(), "gradients")));
  }
  if (is_first()) return ok();
  const at::Tensor gradient = held.input.grad();
  // A stage that does not use its input has no gradient for it.
  send(gradients_, gradients_.rank() - 1,
       gradient.defined() ? gradient : at::zeros_like(held.input.detach()), "gradients");
  return ok();
}

Result<at::Tensor> Pipeline::receive(collectives::Group& group, int stage, at::IntArrayRef sizes,
                                     const char* name) {
  at::Tensor values = at::empty(sizes, at::kFloat);
  // Runs after the sends that were started before.
  TRY(group.start_receive(stage, buffer_of(values), name)
          .wait()
          .in(std::string("receiving ") + name + " of stage " + std::to_string(stage)));
  return values;
}

void Pipeline::send(collectives::Group& group, int stage, const at::Tensor& values,
                    const char* name) {
  at::Tensor sent = values.detach().contiguous();
  auto handle = group.start_send(stage, buffer_of(sent), name);
  sending_.push_back({std::move(sent), std::move(handle)});
}

// Removes completed sends; with `all`, waits for the others.
Result<void> Pipeline::wait_for_sends(bool all) {
  Result<void> result = ok();
  for (auto each = sending_.begin(); each != sending_.end();) {
    if (!all && !each->handle.done()) {
      ++each;
      continue;
    }
    auto done = each->handle.wait();
    if (!done && result) result = std::move(done);
    each = sending_.erase(each);
  }
  return result;
}

}  // namespace trainyard::parallel
