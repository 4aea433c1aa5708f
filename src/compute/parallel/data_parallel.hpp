// Trains one model on all ranks of a group: each rank computes the gradients of its part of the
// batch, and they are summed over the ranks while the backward pass continues.
//
//   auto parallel = TRY(DataParallel::make(model.parameters(), group));
//   for (..) {
//     parallel->begin();                        // gradients are zero
//     loss(part_of_this_rank).backward();       // full buckets are reduced in the background
//     TRY(parallel->finish());                  // gradients are the sums over all ranks
//     optimizer.step(rate, 1.0 / group.size());
//   }
//
// The gradients of the parameters are views of buckets, whose memory is shared between local ranks
// if possible: nothing is copied. The first backward pass reduces buckets in the reverse order of
// the parameters; then all ranks use the order of rank 0's first pass. A parameter without a
// gradient in a pass counts as 0.
//
// Rounding. The sum over ranks is ((g0 + g1) + ..) in the order of the plan (group.hpp), in f32.
//   - One process that runs the ranks' parts one after another, begin(passes), computes the same
//     sum in the order of the parts. For two ranks both are g0 + g1: every parameter is equal bit
//     for bit, after any number of steps. For more ranks a sum differs by at most (ranks - 1)
//     roundings, a relative 6e-8 of the sum of the magnitudes each.
//   - One process that computes the whole batch at once also adds within its matrix products in
//     another order: the gradients agree to some 1e-6 of their magnitude.
//   - Both need the same number of threads (at::set_num_threads), since libtorch divides sums among
//     them.
//
// Memory: one copy of the gradients, each padded to kGradientAlignment.
// Traffic: one allreduce of that size for each step; for n ranks a ring sends 2 (n - 1) / n of it.
//
// Threads: begin(), backward() and finish() on one thread. Errors: those of the group, from
// finish(); then the group cannot be used. Lifetime: the group and the parameters outlive it, and
// no backward pass is in progress when it ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "collectives/group_buffer.hpp"
#include "parallel/buckets.hpp"
#include "parallel/gradient_hooks.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

class DataParallel {
 public:
  // All ranks call it with parameters of equal shapes, in the same order. Afterwards all ranks have
  // the values of rank 0.
  // Requires: contiguous leaf tensors of f32 in ordinary memory, with requires_grad.
  // Errors: also conflict, if the shapes of the parameters differ between ranks.
  static Result<std::unique_ptr<DataParallel>> make(std::vector<at::Tensor> parameters,
                                                    collectives::Group& group,
                                                    BucketLimits limits = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Sets all gradients to 0. The gradients of `passes` backward passes are summed; buckets are
  // reduced during the last one. All ranks use the same number.
  void begin(int passes = 1);
  // Waits until all buckets are reduced.
  Result<void> finish();

  const std::vector<Bucket>& buckets() const { return plan_; }
  // Returns the number of buckets whose reduction has begun since begin().
  size_t started() const { return started_; }

 private:
  struct Memory {
    std::unique_ptr<collectives::GroupBuffer> buffer;
    at::Tensor values;   // the whole bucket
    size_t missing = 0;  // gradients that are not complete in this step
  };
  DataParallel(std::vector<at::Tensor> parameters, collectives::Group& group, BucketLimits limits);
  Result<void> compare_and_broadcast();
  // Makes buckets in this order, and copies the current gradients into them.
  void arrange(const std::vector<int32_t>& order);
  void gradient_is_ready(size_t parameter);
  void start_full_buckets(bool all);
  Result<void> agree_on_order();

  const std::vector<at::Tensor> parameters_;
  collectives::Group& group_;
  const BucketLimits limits_;
  std::vector<size_t> bytes_;  // by parameter
  std::optional<GradientHooks> hooks_;
  std::vector<Bucket> plan_;
  std::vector<Memory> memory_;       // by bucket
  std::vector<size_t> bucket_of_;    // by parameter
  std::vector<int> passes_missing_;  // by parameter, in this step
  std::vector<collectives::Handle> handles_;
  size_t started_ = 0;
  std::vector<int32_t> order_seen_;  // order of the gradients in the first step
  bool order_agreed_ = false;
};

}  // namespace trainyard::parallel
