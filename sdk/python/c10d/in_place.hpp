// An InPlaceRegistration registers the memory of large tensors that are reduced repeatedly, such as
// DDP's buckets. After some reductions, Group::register_in_place maps the tensor's memory in the
// other ranks of this machine, so later reductions need no copy. Pointers to the tensor and its
// views stay valid. The memory becomes private again before the allocator frees it.
//
// Threads: confined to one at a time, except that torch may free a tensor on any thread.
// Lifetime: registered memory stays registered until its tensor is freed, or end() is called.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::sdk {

class InPlaceRegistration {
 public:
  // Call before an allreduce over this memory.
  void note(collectives::Group& group, const at::Tensor& tensor);
  // Ends all registrations. Call after a failed allreduce: ranks that have not noticed the failure
  // may still write to memory that they map.
  void end();

  // for smaller tensors, a copy costs less than a mapping
  static constexpr size_t kBytesMin = size_t{1} << 20;
  // DDP allocates new buckets after the first step
  static constexpr int kSightingsMin = 3;
  static constexpr size_t kKnownMax = 64;  // tensors whose reductions are counted

 private:
  struct Lease;
  struct Owner;
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // prevents reuse of its address
    int sightings = 0;
    std::shared_ptr<Lease> lease;  // shared with the storage's memory, which ends it
  };

  std::vector<Known> known_;
};

}  // namespace trainyard::sdk
