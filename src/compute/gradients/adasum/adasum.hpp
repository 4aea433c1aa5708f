// Computes the adaptive sum of gradients: equal gradients are averaged, and orthogonal ones are
// added.
//
//   a (+) b = (1 - a.b / (2 a.a)) a + (1 - a.b / (2 b.b)) b
//
// So the learning rate need not grow with the number of ranks. (Maleki and others, "Scaling
// Distributed Training with Adaptive Summation", MLSys 2021.)
//
// Pairs of ranks combine in the order of their numbers: 0 with 1, 2 with 3; then 0,1 with 2,3; and
// so on. Of n ranks, let p be the largest power of two that is at most n. Rank p + i first sends
// its gradients to rank i, which combines the two. From then on p ranks take part, and all n get
// the result.
//
//   at distance d = 1, 2, 4 .. p/2, rank r holds a range of the result of its block of d ranks:
//     it halves the range with r ^ d: the lower rank takes the first half, and each sends the half
//       of the other
//     it computes a.b, a.a and b.b over its half, tensor by tensor
//     the 2 d ranks of both blocks add these sums, in the order of the ranks
//     it combines its half
//   then all ranges are sent to all ranks
//
// Of S bytes, a rank sends S (1 - 1/p) in the halving, and S/p to each other rank at the end. At
// each distance it sends 24 bytes per tensor to each other rank. Ranks from p on send S in
// addition, and nothing in between.
//
// Dot products are f64: the product of element i of a half is added to partial sum i modulo
// kAdasumLanes, and the partial sums are added in order. Values are combined in f64 and rounded to
// their type. So all ranks get the same bits in every run.
//
// Threads: as for the operations of group.hpp. Errors: those of the group; invalid.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/group.hpp"

namespace trainyard::gradients {

inline constexpr size_t kAdasumLanes = 8;

// An AdasumWorkspace is the temporary memory of an adaptive sum, which the next one reuses.
class AdasumWorkspace {
 public:
  std::span<std::byte> bytes(size_t size);

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t size_ = 0;
};

// Computes the adaptive sum in place. `tensors` are the sizes, in elements, of the tensors in
// `values`; each tensor is combined separately. Requires: all ranks call it with the same type and
// tensors. Errors: also invalid, for types other than f64, f32, f16 and bf16, and if the sizes of
// the tensors do not add up to `values`.
Result<void> adasum(collectives::Group& group, collectives::BufferView values,
                    std::span<const size_t> tensors, AdasumWorkspace& workspace,
                    std::string_view name = {});

namespace reference {

// Computes the sum in the slow and obvious way, over the values of all ranks at once.
std::vector<std::byte> adasum(collectives::Type type,
                              const std::vector<std::vector<std::byte>>& inputs,
                              std::span<const size_t> tensors);

}  // namespace reference
}  // namespace trainyard::gradients
