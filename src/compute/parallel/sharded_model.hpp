// A ShardedModel is a model of which each rank of a group holds only a part: parameters, gradients
// and the state of the optimizer are divided over the ranks (ZeRO stage 3). So a model that does
// not fit into the memory of one rank can be trained on several.
//
//   ShardedModel model(group, optimizer_settings);
//   for (..) TRY(model.add_unit(named_parameters));     // a layer or a block of layers
//   for (..) {
//     model.begin();
//     for (size_t i = 0; i < model.units(); ++i)        // in the order of add_unit
//       values = TRY(model.run(i, values, [&](const at::Tensor& in) { return layer[i](in); }));
//     loss(values).backward();
//     TRY(model.end_pass());                            // after every backward pass
//     TRY(model.step(rate, 1.0 / group.size()));
//   }
//
// Each rank holds one shard of every unit (shard_layout.hpp). The parameters have values only while
// their unit runs, and while the backward pass computes its gradients. An all_gather fetches the
// values, and the all_gather of the next unit runs in the background meanwhile. The last unit keeps
// its values between the forward and the backward pass. At other times a parameter is an empty
// tensor. When a unit has all gradients, they are reduced to the ranks in the background
// (reduce_scatter).
//
// Rounding: that of zero.hpp. With two ranks and one pass, sgd, nag, adam, adamw and rmsprop give
// the weights of one process bit for bit; p passes over n ranks add at most n + p - 2 roundings to
// the sum of a gradient.
//
// Memory of one rank, with n ranks, P bytes of parameters (each padded to kGradientAlignment, and
// units to n of it), k numbers of state per parameter (numbers_held) and U bytes of the largest
// unit; ShardedModel::memory_held is this formula:
//   P / n (weights) + P / n (sums) + k P / n (state) + kGatheredUnits U + kGradientUnits U
// Traffic that one rank sends in a step of p passes, with L bytes of the last unit;
// ShardedModel::bytes_sent is this formula:
//   p (n - 1) / n P (forward) + p (n - 1) / n (P - L) (backward) + p (n - 1) / n P (gradients)
// which is 3 / 2 of zero.hpp's for one pass. Besides, 8 bytes per rank and pass are compared.
//
// Requires: all ranks run the same units in the same order; a parameter belongs to one unit and is
// used only inside run() of that unit; gradients reach a unit only through its output.
// Threads: all calls and the backward pass on one thread. Errors: those of the group; conflict, if
// ranks ran different units. Then the model cannot be used. A backward pass whose group has failed
// ends with undefined gradients, and end_pass() returns the error. Lifetime: the group outlives the
// model, and no backward pass is in progress when it ends. The parameters are empty afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fnv.hpp"
#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parallel/flat_memory.hpp"
#include "parallel/gradient_hooks.hpp"
#include "parallel/sharded_optimizer.hpp"
#include "parallel/stored_tensors.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

class ShardedModel {
 public:
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  // The number of units whose parameters have values: one runs, and the next is gathered.
  static constexpr size_t kGatheredUnits = 2;
  // The number of units whose gradients exist: one is computed, and one is reduced.
  static constexpr size_t kGradientUnits = 2;

  ShardedModel(collectives::Group& group, OptimizerSettings settings);
  ~ShardedModel();
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;

  // Divides the values of rank 0 over the ranks; afterwards the parameters are empty. If a program
  // makes each unit just before adding it, the whole model never exists in memory.
  // Requires: called before begin() and load(); at least one parameter; contiguous leaf tensors of
  // f32 in ordinary memory, with requires_grad; names differ.
  // Errors: also conflict, if the shapes of the parameters differ between ranks.
  Result<void> add_unit(std::vector<NamedTensor> parameters);
  size_t units() const { return units_.size(); }

  // Sets all gradients to 0. The gradients of any number of passes are then summed.
  void begin();
  // Returns forward(input), called with the parameters of the unit. Under at::NoGradGuard, only
  // evaluates the model.
  Result<at::Tensor> run(size_t unit, const at::Tensor& input, const Forward& forward);
  // Ends a backward pass. A parameter without a gradient in it counts as 0.
  Result<void> end_pass();
  // Waits for the sums of the gradients, and updates the shards of this rank.
  Result<void> step(double rate, double gradient_scale);

  // Save and load checkpoints; see sharded_optimizer.hpp.
  Result<void> save(const std::string& prefix) const;
  Result<void> load(const std::string& prefix);
  int64_t steps_done() const { return optimizer_ ? optimizer_->steps_done() : 0; }

  // Returns the bytes of the tensors that exist now.
  size_t bytes_held() const;
  // Returns the number of units whose parameters have values or are being gathered.
  size_t gathered() const { return gathered_ ? gathered_->taken() : 0; }
  // Returns the number of units that were gathered before they were needed, since the model was
  // made.
  uint64_t prefetched() const { return prefetched_; }

  // Compute the formulas above, in bytes. `parameters` is the number over all units.
  static size_t memory_held(size_t parameters, size_t largest_unit, int ranks, Method method);
  static size_t bytes_sent(size_t parameters, size_t last_unit, int ranks, int passes);

 private:
  struct Unit {
    std::vector<at::Tensor> parameters;
    // views of the parameters in the storage whose memory is replaced
    std::vector<at::Tensor> views;
    at::Tensor flat;                            // that storage as a whole
    Bucket plan;                                // parameters count from the first one of the model
    std::unique_ptr<FlatMemory> weights, sums;  // this rank's shard
    std::unique_ptr<GradientHooks> hooks;
    FlatMemory* gathered = nullptr;             // from the pool gathered_
    FlatMemory* gradients = nullptr;            // from the pool gradients_
    std::optional<collectives::Handle> gather;  // in progress
    size_t missing = 0;                         // gradients that are missing in this pass
  };
  struct Reduction {
    size_t unit;
    collectives::Handle handle;
  };

  void prepare();
  void start_gather(size_t unit);
  void prefetch(size_t unit);
  Result<void> make_available(size_t unit);
  void release(size_t unit);
  void before_backward(size_t unit);
  void gradient_begins(size_t unit);
  void gradient_is_ready(size_t unit);
  void start_full_units(bool all);
  void start_reduction(size_t unit);
  void wait_for_oldest();
  void begin_pass();
  void note(uint64_t operation, size_t unit);
  Result<void> compare_order();

  collectives::Group& group_;
  const OptimizerSettings settings_;
  std::vector<Unit> units_;
  std::vector<ShardedParameter> shapes_;  // shapes of all parameters
  std::optional<ShardedOptimizer> optimizer_;
  std::optional<FlatPool> gathered_, gradients_;
  std::vector<Reduction> reducing_;  // the oldest first
  // units below this index are not yet reduced in this pass, which begins with the last
  size_t unreduced_ = 0;
  int passes_done_ = 0;
  uint64_t prefetched_ = 0;
  uint64_t order_ = kFnvBasis;  // a digest of the operations of this pass
  Result<void> failure_ = ok();
};

}  // namespace trainyard::parallel
