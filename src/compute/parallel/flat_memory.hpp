// A FlatMemory is one tensor of f32 numbers in memory that the ranks of a machine share if
// possible, so that operations between them need fewer copies.
//
// Threads: confined to one at a time. Errors: none; if memory cannot be shared, it is ordinary
// memory.
// Lifetime: the group outlives it; tensors that are views of it end before it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collectives/group.hpp"
#include "parallel/torch.hpp"

namespace trainyard::parallel {

class FlatMemory {
 public:
  // Makes memory with all numbers 0.
  FlatMemory(collectives::Group& group, size_t bytes);
  ~FlatMemory();
  FlatMemory(const FlatMemory&) = delete;
  FlatMemory& operator=(const FlatMemory&) = delete;

  const at::Tensor& values() const { return values_; }
  size_t bytes() const { return values_.nbytes(); }

 private:
  collectives::Group& group_;
  std::span<std::byte> shared_;
  at::Tensor values_;
};

// A FlatPool reuses FlatMemory of one size. Threads and lifetime: as FlatMemory.
class FlatPool {
 public:
  FlatPool(collectives::Group& group, size_t bytes) : group_(group), bytes_(bytes) {}

  // Returns free memory, or makes more. The numbers are undefined.
  FlatMemory* take();
  void give_back(FlatMemory* memory) { free_.push_back(memory); }
  size_t taken() const { return all_.size() - free_.size(); }
  size_t bytes_held() const { return all_.size() * bytes_; }

 private:
  collectives::Group& group_;
  const size_t bytes_;
  std::vector<std::unique_ptr<FlatMemory>> all_;
  std::vector<FlatMemory*> free_;
};

// Returns a view of a contiguous tensor of f32, for an operation.
collectives::BufferView buffer_of(const at::Tensor& values);

// Returns a view of `flat` that begins at a byte, with the shape of another tensor.
at::Tensor view_in(const at::Tensor& flat, size_t begin_bytes, const at::Tensor& shape);

}  // namespace trainyard::parallel
