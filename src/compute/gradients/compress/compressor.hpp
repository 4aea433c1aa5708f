// A Compressor computes sums and averages of float32 tensors that are compressed for sending.
//
//   Compressor compressor(group);
//   TRY(compressor.allreduce(tensors, {.kind = Compression::Kind::int8}, Reduction::average));
//
// All ranks get the same bits. The rounding errors of int8 and low_rank are stored by the key of
// the tensor and added in the next step (error feedback); a tensor whose shape has changed starts
// without errors. A rank sends, for S elements in all and n ranks:
//
//   f16, bf16   the bytes of an allreduce of S elements of that type
//   int8        the pieces of the other ranks, to those ranks, and its own piece of the sum, to
//               all: int8_bytes() of each of these pieces, and the bytes of an all_gather of
//               int8_bytes() of its own piece. Each tensor is split separately, at blocks, so its
//               bits do not depend on the tensors that are sent with it.
//   low_rank    two allreduces of f32: r * (all rows) + vectors elements, and r * (all columns)
//               elements
//
// Threads: one call at a time. Errors: those of the group; invalid. Lifetime: the group outlives
// it.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/group.hpp"
#include "collectives/group_buffer.hpp"
#include "gradients/compress/compression.hpp"
#include "gradients/compress/low_rank.hpp"

namespace trainyard::gradients {

// A tensor to reduce. A vector is a matrix with one column.
struct CompressedTensor {
  std::string key;               // identifies its rounding errors; may be empty for f16 and bf16
  const float* input = nullptr;  // null: zeros
  float* output = nullptr;       // null: not needed on this rank. May be equal to the input
  Matrix shape;
  double prescale = 1;
  double postscale = 1;
};

class Compressor {
 public:
  explicit Compressor(collectives::Group& group)
      : group_(group), outgoing_(group), incoming_(group) {}

  // All ranks pass the same keys and shapes in the same order. Reductions: sum and average.
  Result<void> allreduce(std::span<const CompressedTensor> tensors, Compression compression,
                         collectives::Reduction reduction, std::string_view name = {});
  // Returns the rounding errors of a tensor on this rank, element by element, which the next step
  // adds. Empty if none are stored.
  std::span<const float> residual(const std::string& key) const;
  // Returns the rounding errors of this rank's piece of the sum (int8 only).
  std::span<const float> sum_residual(const std::string& key) const;
  void forget(const std::string& key) { memories_.erase(key); }

 private:
  struct Memory {
    Compression compression;
    Matrix shape;
    std::vector<float> residual;
    std::vector<float> sum_residual;
    std::vector<float> q;
    uint64_t steps = 0;
  };

  Memory& memory_of(const CompressedTensor& tensor, Compression compression);
  Result<void> cast(std::span<const CompressedTensor> tensors, Compression compression,
                    collectives::Reduction reduction, std::string_view name);
  // Writes the pieces of all ranks, in rank order, as int8.
  void write_int8(std::span<const CompressedTensor> tensors, std::span<Memory* const> memories,
                  std::byte* to) const;
  // Adds the pieces of all ranks, whose distance is `stride` bytes, in rank order; writes the sums.
  void sum_int8(std::span<const CompressedTensor> tensors, std::span<Memory* const> memories,
                collectives::Reduction reduction, const std::byte* from, size_t stride,
                std::byte* to) const;
  // Reads the pieces of all ranks into the outputs.
  void read_int8(std::span<const CompressedTensor> tensors, const std::byte* from) const;
  Result<void> by_int8(std::span<const CompressedTensor> tensors, Compression compression,
                       collectives::Reduction reduction, std::string_view name);
  // Computes P of each matrix, and appends the other tensors.
  void project(std::span<const CompressedTensor> tensors, Compression compression, float* to);
  // Computes Q from P, and the rounding errors of both.
  void project_back(std::span<const CompressedTensor> tensors, size_t rank, float* p, float* q);
  // Writes the outputs: the product of P and Q, times `factor`.
  void expand(std::span<const CompressedTensor> tensors, size_t rank, const float* p,
              const float* q, double factor);
  Result<void> by_low_rank(std::span<const CompressedTensor> tensors, Compression compression,
                           collectives::Reduction reduction, std::string_view name);

  collectives::Group& group_;
  collectives::GroupBuffer outgoing_, incoming_;
  std::map<std::string, Memory> memories_;  // by key; one per tensor of the caller
};

}  // namespace trainyard::gradients
