// The adaptive sum of gradients: what ranks agree upon is averaged, what they do not is added.
//
//   a (+) b = (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b
//
// Orthogonal gradients are added, equal ones averaged; so the learning rate need not follow the number of ranks.
// (Maleki and others, "Scaling Distributed Training with Adaptive Summation", MLSys 2021.)
//
// Pairs of ranks combine in the order of their numbers: 0 with 1, 2 with 3; then 0,1 with 2,3; and so on. With n
// ranks, p the largest power of two that is at most n, rank p + i first gives its gradients to rank i, which combines
// the two; from there on p ranks take part, and all n get the result.
//
//   at distance d = 1, 2, 4 .. p/2, rank r holds a range of what its block of d ranks has come to:
//     it halves the range with r ^ d: the lower rank takes the first half, each sends the other's
//     it adds up a.b, a.a and b.b over its half, tensor by tensor
//     the 2 d ranks of both blocks add their parts up, in the order of the ranks
//     it combines its half
//   then all ranges go to all ranks
//
// Bytes that a rank sends, of S: S (1 - 1/p) in the halving, S/p to each other rank in the end, 24 bytes a tensor
// to each other rank at each distance; ranks from p on send S more, and nothing in between.
//
// Dot products are f64: element i of a half goes to partial sum i modulo adasum_lanes, and these are added in their
// order. Values are combined in f64 and rounded to their type. So all ranks get the same bits in every run.
//
// Threads: as group.hpp says of one call after the other. Errors: those of the group; invalid.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::gradients {

inline constexpr size_t adasum_lanes = 8;

// Memory that one adasum needs and the next can use again.
class AdasumWorkspace {
 public:
  std::span<std::byte> bytes(size_t size);

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t size_ = 0;
};

// In place. `tensors` cuts the values into those that are combined each by themselves: their sizes, in elements.
// Requires: all ranks call it with the same type and tensors. Errors: also invalid, for types that are no f64, f32,
// f16 or bf16, and where the tensors are not all of the values.
Result<void> adasum(collectives::Group& group, collectives::BufferView values,
                    std::span<const size_t> tensors, AdasumWorkspace& workspace, std::string_view name = {});

namespace reference {

// The slow and obvious way, over all ranks' values at once.
std::vector<std::byte> adasum(collectives::Type type, const std::vector<std::vector<std::byte>>& inputs,
                              std::span<const size_t> tensors);

}  // namespace reference
}  // namespace trainyard::gradients
