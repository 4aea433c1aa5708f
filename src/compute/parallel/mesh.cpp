#include "parallel/mesh.hpp"

#include <string>

#include "base/arithmetic.hpp"
#include "base/check.hpp"

namespace trainyard::parallel {
namespace {

Result<void> check_shape(const MeshShape& shape, int ranks) {
  const std::string text = std::to_string(shape.data) + " x " + std::to_string(shape.pipeline) +
                           " x " + std::to_string(shape.tensor);
  if (shape.data < 1 || shape.pipeline < 1 || shape.tensor < 1)
    return invalid("invalid mesh " + text + ": each dimension has at least 1 rank");
  const auto plane = checked_mul<int64_t>(shape.data, shape.pipeline);
  const auto all = plane ? checked_mul<int64_t>(*plane, shape.tensor) : std::nullopt;
  if (all != int64_t(ranks))
    return invalid("invalid mesh " + text + ": the group has " + std::to_string(ranks) + " ranks");
  return ok();
}

}  // namespace

MeshPosition position_of(const MeshShape& shape, int rank) {
  CHECK(rank >= 0 && rank < shape.data * shape.pipeline * shape.tensor, "a rank of the mesh");
  return {rank / shape.tensor / shape.pipeline, rank / shape.tensor % shape.pipeline,
          rank % shape.tensor};
}

int rank_at(const MeshShape& shape, const MeshPosition& position) {
  return (position.data * shape.pipeline + position.pipeline) * shape.tensor + position.tensor;
}

Result<std::unique_ptr<DeviceMesh>> DeviceMesh::make(collectives::Group& group, MeshShape shape) {
  TRY(check_shape(shape, group.size()));
  const MeshPosition at = position_of(shape, group.rank());
  std::unique_ptr<DeviceMesh> mesh(new DeviceMesh(at));
  mesh->data_ = TRY(group.split(rank_at(shape, {0, at.pipeline, at.tensor})));
  mesh->tensor_ = TRY(group.split(rank_at(shape, {at.data, at.pipeline, 0})));
  const int stages = rank_at(shape, {at.data, 0, at.tensor});
  mesh->activations_ = TRY(group.split(stages));
  mesh->gradients_ = TRY(group.split(stages));
  return mesh;
}

}  // namespace trainyard::parallel
