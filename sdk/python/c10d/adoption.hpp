// Large tensors that are reduced again and again, as DDP's buckets are: when one is met often
// enough, its memory becomes memory that the ranks here map (Group::adopt), and from then on it is
// reduced without a copy. Every pointer and view stays good. It is private again before the
// allocator gets it back.
//
// Threads: confined to one at a time, but that torch may free a tensor meanwhile, anywhere.
// Lifetime: none: what was adopted stays so for as long as its tensor lives, also when we are gone.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::sdk {

class Adoption {
 public:
  // An allreduce over this memory is about to begin.
  void note(collectives::Group& group, const at::Tensor& tensor);
  // After one has failed: ranks that have not heard of it may still write to what they map.
  void end();

  // less is copied sooner than it is worth a mapping
  static constexpr size_t kBytesMin = size_t{1} << 20;
  // DDP makes its buckets anew after the first step
  static constexpr int kSightingsMin = 3;
  static constexpr size_t kKnownMax = 64;  // tensors that are looked out for

 private:
  struct Lease;
  struct Keeper;
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // keeps its address from being used anew
    int sightings = 0;
    std::shared_ptr<Lease> lease;  // shared with the storage's memory, which ends it
  };

  std::vector<Known> known_;
};

}  // namespace trainyard::sdk
