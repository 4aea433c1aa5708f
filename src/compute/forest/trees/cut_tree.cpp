#include "forest/trees/cut_tree.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "forest/trees/boxes.hpp"

namespace trainyard::forest {
namespace {

double unseen(size_t depth) { return 1.0 / double(depth + 1); }

double seen(size_t depth, uint32_t mass, uint32_t tree_mass) {
  const double damped = 1 - double(mass) / (2 * double(tree_mass));
  return damped / (double(depth) + std::log2(double(mass) + 1));
}

bool equals(const float* a, const float* b, size_t dimensions) {
  for (size_t i = 0; i < dimensions; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

// Returns a float in [low, high) that is near `value`. Requires: low < high.
float within(float low, float high, double value) {
  const auto rounded = float(value);
  if (rounded >= high) return std::nextafter(high, -std::numeric_limits<float>::infinity());
  return std::max(low, rounded);
}

}  // namespace

CutTree::Ref CutTree::make_node() {
  if (!free_nodes_.empty()) {
    const Ref ref = free_nodes_.back();
    free_nodes_.pop_back();
    return ref;
  }
  nodes_.emplace_back();
  boxes_.resize(boxes_.size() + 2 * dimensions_);
  return Ref(nodes_.size() - 1);
}

CutTree::Ref CutTree::make_leaf(uint32_t slot) {
  Ref ref = 0;
  if (!free_leaves_.empty()) {
    ref = free_leaves_.back();
    free_leaves_.pop_back();
  } else {
    leaves_.emplace_back();
    ref = ~Ref(leaves_.size() - 1);
  }
  leaves_[size_t(~ref)] = {kNone, slot, 1};
  return ref;
}

void CutTree::replace_child(Ref parent, Ref from, Ref to) {
  if (parent == kNone) {
    root_ = to;
  } else {
    Node& above = nodes_[size_t(parent)];
    (above.left == from ? above.left : above.right) = to;
  }
  parent_of(to) = parent;
}

void CutTree::update_box(Ref ref, const PointStore& points) {
  Node& node = nodes_[size_t(ref)];
  float* low = mutable_low(ref);
  unite(low, low + dimensions_, low_of(node.left, points), high_of(node.left, points),
        low_of(node.right, points), high_of(node.right, points), dimensions_);
  node.ranges = ranges_of(low, low + dimensions_, dimensions_);
  node.mass = mass_of(node.left) + mass_of(node.right);
}

CutTree::Cut CutTree::cut_outside(const float* low, const float* high, const float* point,
                                  double offset) const {
  Cut last{0, 0, false};
  for (size_t i = 0; i < dimensions_; ++i) {
    const bool above = point[i] > high[i], below = point[i] < low[i];
    if (!above && !below) continue;
    const float from = above ? high[i] : point[i], to = above ? point[i] : low[i];
    const double width = double(to) - double(from);
    last = {uint32_t(i), within(from, to, double(from) + std::min(offset, width)), below};
    if (offset < width) break;
    offset -= width;
  }
  return last;  // reached only if rounding left a rest of the offset
}

void CutTree::split_off(Ref at, Ref added, const Cut& cut, const PointStore& points) {
  const Ref made = make_node();
  const Ref parent = parent_of(at);
  replace_child(parent, at, made);
  Node& node = nodes_[size_t(made)];
  node.dimension = cut.dimension;
  node.cut = cut.value;
  node.left = cut.point_is_left ? added : at;
  node.right = cut.point_is_left ? at : added;
  parent_of(at) = made;
  parent_of(added) = made;
  update_box(made, points);
}

bool CutTree::insert(uint32_t slot, const PointStore& points) {
  const float* point = points.at(slot);
  if (root_ == kNone) {
    root_ = make_leaf(slot);
    return true;
  }
  for (Ref at = root_;;) {
    const float* low = low_of(at, points);
    const float* high = high_of(at, points);
    const double excess = excess_of(low, high, point, dimensions_);
    if (excess > 0) {
      const double ranges = is_leaf(at) ? 0 : node(at).ranges;
      const double place = random_.fraction() * (ranges + excess);
      if (place < excess || is_leaf(at)) {
        const Cut cut = cut_outside(low, high, point, place);
        split_off(at, make_leaf(slot), cut, points);
        return true;
      }
    } else if (is_leaf(at)) {
      ++leaves_[size_t(~at)].mass;
      return false;
    }
    Node& node = nodes_[size_t(at)];
    ++node.mass;
    if (excess > 0) {
      float* box = mutable_low(at);
      extend(box, box + dimensions_, point, dimensions_);
      node.ranges = ranges_of(box, box + dimensions_, dimensions_);
    }
    at = point[node.dimension] <= node.cut ? node.left : node.right;
  }
}

CutTree::Ref CutTree::find_leaf(const float* point) const {
  Ref at = root_;
  while (!is_leaf(at)) {
    const Node& node = this->node(at);
    at = point[node.dimension] <= node.cut ? node.left : node.right;
  }
  return at;
}

std::optional<uint32_t> CutTree::remove(std::span<const float> point, const PointStore& points) {
  CHECK(root_ != kNone, "the tree has the point that is removed");
  const Ref found = find_leaf(point.data());
  CHECK(equals(points.at(leaf(found).slot), point.data(), dimensions_),
        "the tree has the point that is removed");
  Ref above = leaf(found).parent;
  std::optional<uint32_t> gone;
  if (--leaves_[size_t(~found)].mass == 0) {
    gone = leaf(found).slot;
    free_leaves_.push_back(found);
    const Ref parent = above;
    if (parent == kNone) {
      root_ = kNone;
      return gone;
    }
    above = node(parent).parent;
    replace_child(above, parent,
                  node(parent).left == found ? node(parent).right : node(parent).left);
    free_nodes_.push_back(parent);
  }
  bool shrinks = gone.has_value();
  for (; above != kNone; above = node(above).parent) {
    shrinks = shrinks && !is_strictly_inside(low(above), high(above), point.data(), dimensions_);
    if (shrinks) {
      update_box(above, points);
    } else {
      --nodes_[size_t(above)].mass;
    }
  }
  return gone;
}

double CutTree::leaf_score(Ref ref, const float* point, size_t depth, const PointStore& points,
                           bool& equal) const {
  equal = equals(points.at(leaf(ref).slot), point, dimensions_);
  return equal ? seen(depth, leaf(ref).mass, mass()) : unseen(depth);
}

double CutTree::score(const float* point, const PointStore& points) const {
  if (root_ == kNone) return 0;
  size_t depth = 0;
  Ref at = root_;
  while (!is_leaf(at)) {
    const Node& node = this->node(at);
    at = point[node.dimension] <= node.cut ? node.left : node.right;
    ++depth;
  }
  bool inside = false;
  double score = leaf_score(at, point, depth, points, inside);
  // A box that contains the point is contained in all boxes above it.
  for (Ref above = leaf(at).parent; above != kNone && !inside; above = node(above).parent) {
    --depth;
    const double excess = excess_of(low(above), high(above), point, dimensions_);
    inside = excess == 0;
    if (inside) break;
    const double separates = excess / (node(above).ranges + excess);
    score = separates * unseen(depth) + (1 - separates) * score;
  }
  return score * std::log2(double(mass()) + 1);
}

void CutTree::attribute(const float* point, const PointStore& points,
                        std::span<double> parts) const {
  if (root_ == kNone) return;
  size_t depth = 0;
  Ref at = root_;
  for (; !is_leaf(at); ++depth)
    at = point[node(at).dimension] <= node(at).cut ? node(at).left : node(at).right;
  bool equal = false;
  const double leaf_part = leaf_score(at, point, depth, points, equal);
  std::vector<double> own(dimensions_, leaf_part / double(dimensions_));
  std::vector<float> low_others, high_others;  // of the points other than an equal leaf
  const auto blend = [&](const float* low, const float* high, double value, bool replaces) {
    const double excess = excess_of(low, high, point, dimensions_);
    if (excess == 0) return false;
    const double all = replaces ? excess : ranges_of(low, high, dimensions_) + excess;
    for (size_t i = 0; i < dimensions_; ++i) {
      const double distance = excess_of(low + i, high + i, point + i, 1);
      own[i] = distance / all * value + (replaces ? 0 : (1 - excess / all) * own[i]);
    }
    return true;
  };
  if (!equal) {
    const float* place = points.at(leaf(at).slot);
    blend(place, place, leaf_part, true);
  }
  Ref below = at;
  for (Ref above = leaf(at).parent; above != kNone; below = above, above = node(above).parent) {
    --depth;
    const float* low = this->low(above);
    const float* high = this->high(above);
    if (equal) {
      const Ref sibling = node(above).left == below ? node(above).right : node(above).left;
      const float* sibling_low = low_of(sibling, points);
      const float* sibling_high = high_of(sibling, points);
      if (low_others.empty()) {
        low_others.assign(sibling_low, sibling_low + dimensions_);
        high_others.assign(sibling_high, sibling_high + dimensions_);
      } else {
        unite(low_others.data(), high_others.data(), low_others.data(), high_others.data(),
              sibling_low, sibling_high, dimensions_);
      }
      low = low_others.data();
      high = high_others.data();
    }
    if (!blend(low, high, unseen(depth), false)) break;
  }
  double sum = 0;
  for (const double part : own) sum += part;
  const double scale = std::log2(double(mass()) + 1) * (equal && sum > 0 ? leaf_part / sum : 1);
  for (size_t i = 0; i < dimensions_; ++i) parts[i] += own[i] * scale;
}

CutTree::Ref CutTree::append_leaf(uint32_t slot, uint32_t mass) {
  const Ref ref = make_leaf(slot);
  leaves_[size_t(~ref)].mass = mass;
  return ref;
}

std::optional<CutTree::Ref> CutTree::join(uint32_t dimension, float cut, Ref left, Ref right,
                                          const PointStore& points) {
  if (!(high_of(left, points)[dimension] <= cut && cut < low_of(right, points)[dimension]))
    return std::nullopt;
  const Ref made = make_node();
  Node& node = nodes_[size_t(made)];
  node = {kNone, left, right, dimension, cut, 0, 0};
  parent_of(left) = made;
  parent_of(right) = made;
  update_box(made, points);
  return made;
}

}  // namespace trainyard::forest
