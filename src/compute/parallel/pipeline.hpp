// A Pipeline runs one stage of a model. It receives activations from the stage before it, sends its
// own to the stage after it, and sends gradients back, in the order of pipeline_plan.hpp.
//
//   Pipeline pipeline(mesh->activations(), mesh->gradients(),
//                     {.micro_batches = 8, .input_sizes = {32, 512}});
//   for (..) {
//     zero_gradients();
//     TRY(pipeline.run([&](const at::Tensor& input, int micro_batch) {
//       if (is_last) return loss(layers(input), labels[micro_batch]);
//       return layers(is_first ? batch[micro_batch] : input);
//     }));
//     optimizer.step(rate, 1.0 / 8);
//   }
//
// The gradients of the parameters are summed over the micro-batches in their order. They equal, bit
// for bit, the gradients of one process that computes one micro-batch after another.
//
// Sends run in the background. Activations and gradients use two groups, so that sending one does
// not wait for the other. So no schedule of pipeline_plan.hpp can block, however small the buffers
// of the connections are (its test simulates this).
//
// Memory: inputs and activations of activations_held() micro-batches; outputs until they are sent.
// Traffic of a step: a stage sends its output once for each micro-batch, and a gradient of the size
// of its input. Idle time: bubble().
//
// Threads: confined to one, with the backward pass. Errors: those of the groups, naming the rank at
// fault; both groups are abandoned after the first error, so that the other stages end. Lifetime:
// the groups outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parallel/pipeline_plan.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

struct PipelineSettings {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int micro_batches = 1;  // equal on all stages
  // The shape of the activations that the stage before sends for one micro-batch; the first stage
  // does not use it.
  std::vector<int64_t> input_sizes;
};

class Pipeline {
 public:
  // Returns the output of this stage for a micro-batch, in f32, contiguous or not. The last stage
  // returns a loss of one number. The input of the first stage is undefined.
  using Forward = std::function<at::Tensor(const at::Tensor& input, int micro_batch)>;
  // Called after each backward pass, for instance to call end_pass() of another strategy.
  using AfterBackward = std::function<Result<void>()>;

  // Rank r of both groups is stage r.
  Pipeline(collectives::Group& activations, collectives::Group& gradients,
           PipelineSettings settings);

  // Runs all micro-batches forward and backward. Returns the sum of their losses on the last stage,
  // and 0 on the others.
  Result<double> run(const Forward& forward, const AfterBackward& after_backward = nullptr);

  // Returns the largest number of micro-batches whose activations existed at the same time.
  size_t most_held() const { return most_held_; }

 private:
  struct Activations {
    at::Tensor input, output;
  };
  struct Sending {
    at::Tensor values;  // must exist until they are sent
    collectives::Handle handle;
  };

  bool is_first() const { return activations_.rank() == 0; }
  bool is_last() const { return activations_.rank() + 1 == activations_.size(); }
  Result<void> run_operations(const Forward& forward, const AfterBackward& after_backward,
                              double& loss);
  Result<void> run_forward(int micro_batch, const Forward& forward, double& loss);
  Result<void> run_backward(int micro_batch);
  Result<at::Tensor> receive(collectives::Group& group, int stage, at::IntArrayRef sizes,
                             const char* name);
  void send(collectives::Group& group, int stage, const at::Tensor& values, const char* name);
  Result<void> wait_for_sends(bool all);

  collectives::Group& activations_;
  collectives::Group& gradients_;
  const PipelineSettings settings_;
  std::map<int, Activations> held_;  // by micro-batch
  std::deque<Sending> sending_;
  size_t most_held_ = 0;
};

}  // namespace trainyard::parallel
