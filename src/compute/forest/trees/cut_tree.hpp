// A CutTree is a random cut tree: a binary tree whose nodes cut the bounding box of their points at
// a random place, in a dimension that is chosen with a probability proportional to its range.
//
// Source: S. Guha, N. Mishra, G. Roy, O. Schrijvers, "Robust Random Cut Forest Based Anomaly
// Detection on Streams", ICML 2016. insert() is its Algorithm 2 (InsertPoint), remove() its
// Algorithm 1 (ForgetPoint): after insertions and removals in any order, a tree has the same
// distribution as a tree that is drawn for its current points (Theorem 3 and Lemma 4 there).
//
// score() is the expected displacement that a point causes, in the approximation by depth that
// AWS's service and library (github.com/aws/random-cut-forest-by-aws) use: with
//
//   unseen(depth)       1 / (depth + 1)
//   seen(depth, mass)   1 / (depth + log2(mass + 1)), times 1 - mass / (2 tree mass)
//   P(node)             excess / (ranges + excess): the probability that a cut of the node's box,
//                       extended to the point, separates the point from the node's points
//
//   score(leaf)  = seen, if the leaf's point is equal, else unseen
//   score(node)  = P unseen(depth of node) + (1 - P) score(the child on the point's side)
//
// and the root's score is multiplied by log2(tree mass + 1). testing/reference.hpp implements this
// definition literally.
//
// Equal points share a leaf, whose mass is their number. Points are slots of a PointStore, which
// the caller owns and the tree does not change.
//
// Threads: confined to one; score() and attribute() from any thread while nothing changes.
// Errors: none; values must be finite. Units: depth of the root is 0; memory is 8 bytes per
// dimension and node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "forest/trees/keys.hpp"
#include "forest/trees/point_store.hpp"

namespace trainyard::forest {

class CutTree {
 public:
  // 0 or more: the index of an inner node. Negative: a leaf, whose index is ~ref.
  using Ref = int32_t;
  static constexpr Ref kNone = INT32_MIN;

  struct Node {
    Ref parent = kNone;
    // left: points whose value is at most the cut; right: the others
    Ref left = kNone, right = kNone;
    uint32_t dimension = 0;
    float cut = 0;
    uint32_t mass = 0;
    double ranges = 0;  // the sum of ranges of the box
  };
  struct Leaf {
    Ref parent = kNone;
    uint32_t slot = 0;  // slot of the point
    uint32_t mass = 0;
  };

  CutTree(size_t dimensions, uint64_t seed) : dimensions_(dimensions), random_(seed) {}

  // Inserts a point. Returns true if it made a new leaf, which uses `slot` until remove() returns
  // the slot.
  bool insert(uint32_t slot, const PointStore& points);
  // Removes one point that equals `point`. Returns the slot of its leaf if the leaf was removed,
  // too.
  // Requires: such a point was inserted.
  std::optional<uint32_t> remove(std::span<const float> point, const PointStore& points);

  double score(const float* point, const PointStore& points) const;
  // Adds the contribution of each dimension to the score to `parts`; their sum is the score. A
  // point that is in the tree is attributed by the boxes of its siblings, as if its leaf were
  // absent.
  void attribute(const float* point, const PointStore& points, std::span<double> parts) const;

  uint32_t mass() const { return root_ == kNone ? 0 : mass_of(root_); }
  size_t leaves() const { return leaves_.size() - free_leaves_.size(); }
  Ref root() const { return root_; }
  uint64_t random_state() const { return random_.state(); }  // the seed for later insertions
  const Node& node(Ref ref) const { return nodes_[size_t(ref)]; }
  const Leaf& leaf(Ref ref) const { return leaves_[size_t(~ref)]; }
  const float* low(Ref ref) const { return boxes_.data() + size_t(ref) * 2 * dimensions_; }
  const float* high(Ref ref) const { return low(ref) + dimensions_; }
  static bool is_leaf(Ref ref) { return ref < 0; }

  // For the reader of model files, which builds a tree from the leaves up. append_leaf() appends a
  // leaf without a parent. join() joins two subtrees, and returns nothing if a point is on the
  // wrong side of the cut.
  Ref append_leaf(uint32_t slot, uint32_t mass);
  std::optional<Ref> join(uint32_t dimension, float cut, Ref left, Ref right,
                          const PointStore& points);
  void set_root(Ref root) { root_ = root; }

 private:
  struct Cut {
    uint32_t dimension;
    float value;
    bool point_is_left;
  };

  uint32_t mass_of(Ref ref) const { return is_leaf(ref) ? leaf(ref).mass : node(ref).mass; }
  Ref& parent_of(Ref ref) {
    return is_leaf(ref) ? leaves_[size_t(~ref)].parent : nodes_[size_t(ref)].parent;
  }
  const float* low_of(Ref ref, const PointStore& points) const {
    return is_leaf(ref) ? points.at(leaf(ref).slot) : low(ref);
  }
  const float* high_of(Ref ref, const PointStore& points) const {
    return is_leaf(ref) ? points.at(leaf(ref).slot) : high(ref);
  }
  float* mutable_low(Ref ref) { return boxes_.data() + size_t(ref) * 2 * dimensions_; }
  Ref find_leaf(const float* point) const;
  Ref make_node();
  Ref make_leaf(uint32_t slot);
  void replace_child(Ref parent, Ref from, Ref to);
  void update_box(Ref ref, const PointStore& points);
  void split_off(Ref at, Ref added, const Cut& cut, const PointStore& points);
  // Returns the cut through the part of the extended box outside of the box, at `offset` of the
  // excess.
  Cut cut_outside(const float* low, const float* high, const float* point, double offset) const;
  double leaf_score(Ref ref, const float* point, size_t depth, const PointStore& points,
                    bool& equal) const;

  size_t dimensions_;
  RandomStream random_;
  Ref root_ = kNone;
  std::vector<Node> nodes_;
  std::vector<Leaf> leaves_;
  std::vector<float> boxes_;  // (nodes, low and high, dimensions)
  std::vector<Ref> free_nodes_, free_leaves_;
};

}  // namespace trainyard::forest
