// Zero trains one model on all ranks of a group, like data_parallel.hpp, but each rank holds only a
// part of the optimizer's state (ZeRO stage 1), or of the state and the gradients (stage 2).
//
//   auto zero = TRY(Zero::make(named_parameters, group, {.stage = ZeroStage::gradients}));
//   for (..) {
//     zero->begin();                           // or begin(passes), to accumulate gradients
//     loss(part_of_this_rank).backward();      // full buckets are reduced in the background
//     TRY(zero->end_pass());                   // after every backward pass
//     TRY(zero->step(rate, 1.0 / group.size()));
//   }
//
// The parameters are views of buckets in the order of the backward pass. A bucket is cut into one
// shard for each rank (shard_layout.hpp). When all its gradients are computed, a reduce_scatter
// gives each rank the sums of its shard; step() updates the weights of this rank's shards, and an
// all_gather sends them to all ranks. sharded_model.hpp also divides the parameters (stage 3).
//
// Stage 1 adds the gradients of all passes on each rank, and reduces them during the last pass.
// Stage 2 reduces the gradients of every pass, since no rank has memory for all of them: at most
// kGradientBuckets buckets exist at the same time, one that is filled and one that is reduced.
//
// Rounding. The sum over ranks is as in data_parallel.hpp. With two ranks and one pass, sgd, nag,
// adam, adamw and rmsprop give the weights of one process bit for bit. With more ranks a sum
// differs by at most (ranks - 1) roundings; stage 2 with p passes adds over ranks before passes,
// which is another p - 1 roundings. Norms: see optimizer.hpp.
//
// Memory of one rank, with n ranks, P bytes of parameters (each padded to kGradientAlignment, and
// buckets to n of it), k numbers of state per parameter (numbers_held), and B bytes of the largest
// bucket; memory_held(stage, ..) is this formula:
//   stage 1   P (weights) + P (gradients) + P / n (sums) + k P / n (state)
//   stage 2   P (weights) + kGradientBuckets B           + P / n (sums) + k P / n (state)
// Traffic that one rank sends in a step of p passes; bytes_sent(stage, ..) is this formula:
//   stage 1   (n - 1) / n P (reduce_scatter) + (n - 1) / n P (all_gather): that of an allreduce
//   stage 2   p (n - 1) / n P                + (n - 1) / n P
//
// Threads: all calls and the backward pass on one thread. Errors: those of the group, from
// end_pass() and step(); then the group cannot be used. Lifetime: the group and the parameters
// outlive it, and no backward pass is in progress when it ends. Parameters then keep their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parallel/flat_memory.hpp"
#include "parallel/gradient_hooks.hpp"
#include "parallel/sharded_optimizer.hpp"
#include "parallel/stored_tensors.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

enum class ZeroStage : uint8_t { optimizer_state = 1, gradients = 2 };

struct ZeroSettings {
  ZeroStage stage = ZeroStage::optimizer_state;
  OptimizerSettings optimizer;
  BucketLimits buckets;
  // The parameters in the order in which the backward pass computes their gradients; empty: the
  // reverse of their order. A different order gives correct results, but overlaps less, and stage 2
  // then holds more buckets.
  std::vector<int32_t> order;
};

class Zero {
 public:
  // The number of buckets of gradients in stage 2: one is reduced while the next is filled.
  static constexpr size_t kGradientBuckets = 2;

  // All ranks call it; see DataParallel::make.
  static Result<std::unique_ptr<Zero>> make(std::vector<NamedTensor> parameters,
                                            collectives::Group& group, ZeroSettings settings);
  ~Zero();
  Zero(const Zero&) = delete;
  Zero& operator=(const Zero&) = delete;

  // Sets all gradients to 0. The gradients of `passes` backward passes are summed. All ranks use
  // the same number.
  void begin(int passes = 1);
  // Ends a backward pass. A parameter without a gradient in it counts as 0. Returns the first error
  // of a reduction.
  Result<void> end_pass();
  // Waits for the sums, changes the parameters and sends them to all ranks.
  // Requires: all passes have ended.
  Result<void> step(double rate, double gradient_scale);

  // See sharded_optimizer.hpp. load() also sends the weights to all ranks.
  Result<void> save(const std::string& prefix) const { return optimizer_->save(prefix); }
  Result<void> load(const std::string& prefix);
  int64_t steps_done() const { return optimizer_->steps_done(); }

  // Returns the bytes of the tensors that exist now: weights, gradients, sums and state.
  size_t bytes_held() const;
  // Returns the number of buckets whose reduction has begun in this pass.
  size_t started() const { return started_; }
  size_t buckets() const { return buckets_.size(); }

 private:
  struct BucketMemory {
    Bucket plan;
    std::unique_ptr<FlatMemory> weights;        // the whole bucket
    std::unique_ptr<FlatMemory> own_gradients;  // stage 1
    std::unique_ptr<FlatMemory> sums;           // this rank's shard
    FlatMemory* gradients = nullptr;            // in use now: own_gradients, or from the pool
    size_t missing = 0;                         // gradients that are not complete
  };
  struct Reduction {
    size_t bucket;
    collectives::Handle handle;
  };

  Zero(std::vector<NamedTensor> parameters, collectives::Group& group, ZeroSettings settings);
  Result<void> broadcast_parameters();
  void make_buckets();
  at::Tensor own_shard(const at::Tensor& values) const;
  void attach_gradients(size_t bucket, FlatMemory& memory);
  void detach_gradients(size_t bucket);
  void gradient_begins(size_t parameter);
  void gradient_is_ready(size_t parameter);
  void start_full_buckets(bool all);
  void start(size_t bucket);
  void wait_for_oldest();
  void begin_pass();
  Result<void> gather_weights();

  const std::vector<NamedTensor> names_;
  const std::vector<at::Tensor> parameters_;
  collectives::Group& group_;
  const ZeroSettings settings_;
  std::optional<GradientHooks> hooks_;
  std::vector<BucketMemory> buckets_;
  std::vector<size_t> bucket_of_;  // by parameter
  std::optional<ShardedOptimizer> optimizer_;
  std::optional<FlatPool> gradients_;  // stage 2: memory of the size of the largest bucket
  std::vector<Reduction> reducing_;    // the oldest first
  std::vector<int> passes_missing_;    // by parameter: until its gradient is complete
  int passes_ = 0, passes_done_ = 0;   // backward passes in this step
  size_t started_ = 0;
  Result<void> failure_ = ok();
};

// Compute the formulas above, in bytes. `parameters` is the number over all buckets, and
// `largest_bucket` the number in the largest bucket.
size_t memory_held(ZeroStage stage, size_t parameters, size_t largest_bucket, int ranks,
                   Method method);
size_t bytes_sent(ZeroStage stage, size_t parameters, int ranks, int passes);

}  // namespace trainyard::parallel
