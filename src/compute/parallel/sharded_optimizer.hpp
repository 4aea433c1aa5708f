// A ShardedOptimizer changes the parts of the parameters that its rank holds, and stores them in
// checkpoints that any number of ranks reads.
//
// Norms (clip_norm, lars, lamb) are over whole parameters: one allreduce of one or two numbers
// per parameter in f64.
//
// Memory: numbers_held(method) / n of the parameters for n ranks, see optimizer.hpp. save() needs
// memory for the own file, and load() for one file of the writers at a time.
// Threads: confined to one at a time. Errors: of the group; of checkpoints, also those of files,
// with the rank whose file is meant. All ranks return an error when one of them does.
// Lifetime: the group outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectives/group.hpp"
#include "parallel/optimizer.hpp"
#include "parallel/shard_layout.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

struct ShardedParameter {
  std::string name;
  std::vector<int64_t> sizes;  // of the whole parameter

  size_t bytes() const;
};

// The shard of this rank in one bucket, as two flat tensors.
struct BucketShard {
  Bucket bucket;
  at::Tensor weights, gradients;
};

// A part of a parameter that this rank holds, and its place.
struct OwnPart {
  ShardPart place;
  OptimizedPart part;
};

class ShardedOptimizer {
 public:
  // `parameters` and the buckets are equal on all ranks.
  ShardedOptimizer(OptimizerSettings settings, std::vector<ShardedParameter> parameters,
                   const std::vector<BucketShard>& shards, collectives::Group& group);

  Result<void> step(double rate, double gradient_scale);

  // Writes the weights and the state: one file "PREFIX-STEPS-RANK-of-RANKS.safetensors" for each
  // rank, and when all are there "PREFIX.safetensors", which names steps and ranks. A reader sees
  // the old checkpoint or the new one. The files of earlier steps stay: the caller removes them.
  // All ranks call it, with one directory that all see.
  Result<void> save(const std::string& prefix) const;
  // Assigns weights and state of a checkpoint that any number of ranks wrote, with any buckets.
  // After an error they are undefined.
  Result<void> load(const std::string& prefix);

  int64_t steps_done() const { return optimizer_.steps_done(); }
  // The bytes of the state.
  size_t bytes_held() const;

 private:
  // A tensor of a checkpoint of which this rank holds a part.
  struct StoredPart {
    std::string name;
    std::vector<uint64_t> shape;
    uint64_t begin = 0;
    at::Tensor values;
  };
  std::vector<StoredPart> stored_parts() const;
  Result<void> write_files(const std::string& prefix) const;
  Result<int64_t> read_files(const std::string& prefix);
  // Returns the first error of a rank on all ranks.
  Result<void> agree(const char* doing, Result<void> mine) const;

  const std::vector<ShardedParameter> parameters_;
  collectives::Group& group_;
  const std::vector<OwnPart> own_;
  Optimizer optimizer_;
};

}  // namespace trainyard::parallel
