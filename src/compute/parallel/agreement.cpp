#include "parallel/agreement.hpp"

#include <string>

#include "base/fnv.hpp"

namespace trainyard::parallel {

Result<void> compare_shapes(const std::vector<at::Tensor>& parameters, collectives::Group& group) {
  uint64_t shapes = kFnvBasis;
  for (const at::Tensor& each : parameters) {
    shapes = fnv1a_step(shapes, uint64_t(each.dim()));
    for (const int64_t extent : each.sizes()) shapes = fnv1a_step(shapes, uint64_t(extent));
  }
  const auto all =
      TRY(group.all_gather(std::to_string(shapes)).in("comparing the parameters of the ranks"));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      return conflict("rank " + std::to_string(rank) +
                      " has parameters of other shapes than rank 0");
  return ok();
}

void check_parameters(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& each : parameters)
    CHECK(each.is_leaf() && each.requires_grad() && each.scalar_type() == at::kFloat &&
              each.is_contiguous(),
          "a parameter is a contiguous leaf tensor of f32 with requires_grad");
}

}  // namespace trainyard::parallel
