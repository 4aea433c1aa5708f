// A ShardedOptimizer updates the parts of the parameters that its rank holds, and stores them in
// checkpoints that any number of ranks can read.
//
// Norms (clip_norm, lars, lamb) are computed over whole parameters, with one allreduce of one or
// two f64 numbers per parameter.
//
// Memory: for n ranks, numbers_held(method) / n numbers per parameter (optimizer.hpp). save() needs
// memory for this rank's file, and load() for one of the files at a time.
// Threads: confined to one at a time. Errors: those of the group; for checkpoints also those of
// files, naming the rank of the file. If one rank returns an error, all ranks do.
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

// A part of a parameter that this rank holds, and its position.
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

  // Writes the weights and the state: one file "PREFIX-STEPS-RANK-of-RANKS.safetensors" per rank,
  // and when all are written, "PREFIX.safetensors", which names steps and ranks. So a reader sees
  // either the old checkpoint or the new one. Files of earlier steps remain, and the caller removes
  // them. All ranks call it, with a directory that all of them share.
  Result<void> save(const std::string& prefix) const;
  // Reads weights and state from a checkpoint, which any number of ranks may have written, with any
  // buckets. After an error the weights and the state are undefined.
  Result<void> load(const std::string& prefix);

  int64_t steps_done() const { return optimizer_.steps_done(); }
  // Returns the bytes of the state.
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
