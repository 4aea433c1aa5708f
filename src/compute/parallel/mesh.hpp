// A DeviceMesh arranges the ranks of a group in three dimensions: copies of a model (data), stages
// of the model (pipeline) and parts of its layers (tensor).
//
//   auto mesh = TRY(DeviceMesh::make(group, {.data = 4, .pipeline = 2, .tensor = 2}));
//   mesh->tensor()     // the ranks that hold parts of the same layers of the same copy
//
// Tensor is the innermost dimension: its ranks communicate most, and have adjacent numbers, which
// launchers place on the same host. Data is the outermost dimension.
//
// Threads: as the groups. Errors: those of Group::split; invalid, if the shape does not fit the
// group. Errors of a part name the ranks of the part, from 0.
// Lifetime: the group outlives its mesh.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "collectives/group.hpp"

namespace trainyard::parallel {

struct MeshShape {
  int data = 1, pipeline = 1, tensor = 1;  // ranks in each dimension
};

struct MeshPosition {
  int data = 0, pipeline = 0, tensor = 0;

  bool operator==(const MeshPosition&) const = default;
};

// Requires: 0 <= rank < the product of the shape.
MeshPosition position_of(const MeshShape& shape, int rank);
int rank_at(const MeshShape& shape, const MeshPosition& position);

class DeviceMesh {
 public:
  // All ranks call it with the same shape.
  static Result<std::unique_ptr<DeviceMesh>> make(collectives::Group& group, MeshShape shape);

  const MeshPosition& position() const { return position_; }
  // Return the group of ranks whose positions differ from this rank's only in one dimension,
  // ordered by it.
  collectives::Group& data() { return *data_; }
  collectives::Group& tensor() { return *tensor_; }
  // Two groups of the same ranks: one sends activations to later stages, one gradients to earlier
  // ones; neither waits for the other.
  collectives::Group& activations() { return *activations_; }
  collectives::Group& gradients() { return *gradients_; }

 private:
  explicit DeviceMesh(MeshPosition position) : position_(position) {}

  const MeshPosition position_;
  std::unique_ptr<collectives::Group> data_, tensor_, activations_, gradients_;
};

}  // namespace trainyard::parallel
