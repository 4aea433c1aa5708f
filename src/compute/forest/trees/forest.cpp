#include "forest/trees/forest.hpp"

#include <algorithm>
#include <utility>

#include "base/arithmetic.hpp"
#include "base/check.hpp"
#include "base/fnv.hpp"
#include "os/parallel.hpp"

namespace trainyard::forest {
namespace {

// Identifies rows that update() adds, which do not belong to an object.
constexpr uint64_t kStream = fnv1a("stream");
// points that are scored with one tree while the tree is in the caches
constexpr size_t kBlock = 64;

bool has_smaller_key(const Sampled& a, const Sampled& b) { return a.key < b.key; }

}  // namespace

Forest::Forest(const ForestOptions& options) : options_(options), points_(options.dimensions) {
  CHECK(options.dimensions > 0 && options.trees > 0 && options.samples_per_tree > 0,
        "a forest has trees with points");
  for (uint64_t tree = 0; tree < options.trees; ++tree) {
    salts_.push_back(salt_of(tree, options.seed));
    trees_.emplace_back(options.dimensions, mix(salts_.back()));
  }
  samples_.resize(options.trees);
}

Forest Forest::from_sample(const ForestOptions& options, std::span<const float> points,
                           std::vector<std::vector<Sampled>> samples, uint64_t rows_seen,
                           size_t threads) {
  Forest forest(options);
  CHECK(samples.size() == options.trees, "each tree has a sample");
  for (size_t at = 0; at < points.size(); at += options.dimensions)
    forest.points_.add(points.subspan(at, options.dimensions));
  std::vector<std::vector<uint32_t>> leaves(options.trees);
  const auto built =
      os::for_each_in_parallel(options.trees, threads, [&](size_t tree) -> Result<void> {
        for (const Sampled& each : samples[tree])
          if (forest.trees_[tree].insert(each.point, forest.points_))
            leaves[tree].push_back(each.point);
        std::make_heap(samples[tree].begin(), samples[tree].end(), has_smaller_key);
        return ok();
      });
  CHECK(built, "building a tree cannot fail");
  for (size_t tree = 0; tree < options.trees; ++tree) {
    for (const Sampled& each : samples[tree]) forest.points_.keep(each.point);
    for (const uint32_t slot : leaves[tree]) forest.points_.keep(slot);
  }
  for (uint32_t slot = 0; slot < forest.points_.slots(); ++slot) forest.points_.release(slot);
  forest.samples_ = std::move(samples);
  forest.rows_seen_ = rows_seen;
  return forest;
}

Forest Forest::from_parts(const ForestOptions& options, Parts parts) {
  Forest forest(options);
  forest.trees_ = std::move(parts.trees);
  forest.samples_ = std::move(parts.samples);
  for (size_t slot = 0; slot < parts.points.slots(); ++slot)
    forest.points_.add(parts.points.point(uint32_t(slot)));
  const auto keep_leaves = [&](const CutTree& tree) {
    std::vector<CutTree::Ref> open;
    if (tree.root() != CutTree::kNone) open.push_back(tree.root());
    while (!open.empty()) {
      const CutTree::Ref at = open.back();
      open.pop_back();
      if (CutTree::is_leaf(at)) {
        forest.points_.keep(tree.leaf(at).slot);
      } else {
        open.insert(open.end(), {tree.node(at).left, tree.node(at).right});
      }
    }
  };
  for (size_t tree = 0; tree < options.trees; ++tree) {
    keep_leaves(forest.trees_[tree]);
    for (const Sampled& each : forest.samples_[tree]) forest.points_.keep(each.point);
    std::make_heap(forest.samples_[tree].begin(), forest.samples_[tree].end(), has_smaller_key);
  }
  for (uint32_t slot = 0; slot < forest.points_.slots(); ++slot) forest.points_.release(slot);
  forest.rows_seen_ = parts.rows_seen;
  return forest;
}

void Forest::replace(size_t tree, uint32_t slot, uint64_t key) {
  auto& sample = samples_[tree];
  if (sample.size() == options_.samples_per_tree) {
    std::pop_heap(sample.begin(), sample.end(), has_smaller_key);
    const uint32_t old = sample.back().point;
    sample.pop_back();
    if (const auto leaf = trees_[tree].remove(points_.point(old), points_)) points_.release(*leaf);
    points_.release(old);
  }
  // In a very long stream, weighted keys may be rounded to equal numbers, but a sample has an
  // order.
  while (std::ranges::find(sample, key, &Sampled::key) != sample.end()) ++key;
  sample.push_back({key, slot});
  std::push_heap(sample.begin(), sample.end(), has_smaller_key);
  points_.keep(slot);
  if (trees_[tree].insert(slot, points_)) points_.keep(slot);
}

void Forest::update(std::span<const float> point) {
  const uint64_t hash = hash_of({kStream, rows_seen_}, options_.seed);
  const double log_weight = options_.time_decay * double(rows_seen_);
  ++rows_seen_;
  std::optional<uint32_t> slot;
  for (size_t tree = 0; tree < options_.trees; ++tree) {
    uint64_t key = key_of(hash, salts_[tree]);
    if (options_.time_decay > 0) key = weighted_key(key, log_weight);
    const auto& sample = samples_[tree];
    if (sample.size() == options_.samples_per_tree && key >= sample.front().key) continue;
    if (!slot) slot = points_.add(point);
    replace(tree, *slot, key);
  }
  if (slot) points_.release(*slot);
}

double Forest::score(std::span<const float> point) const {
  double result = 0;
  score(point, {&result, 1});
  return result;
}

void Forest::score(std::span<const float> points, std::span<double> scores) const {
  CHECK(points.size() == scores.size() * options_.dimensions, "each point has its dimensions");
  for (size_t begin = 0; begin < scores.size(); begin += kBlock) {
    const auto block = scores.subspan(begin, std::min(kBlock, scores.size() - begin));
    std::ranges::fill(block, 0);
    for (const CutTree& tree : trees_)
      for (size_t i = 0; i < block.size(); ++i)
        block[i] += tree.score(points.data() + (begin + i) * options_.dimensions, points_);
    for (double& each : block) each /= double(options_.trees);
  }
}

std::vector<double> Forest::attribution(std::span<const float> point) const {
  std::vector<double> parts(options_.dimensions);
  for (const CutTree& tree : trees_) tree.attribute(point.data(), points_, parts);
  for (double& part : parts) part /= double(options_.trees);
  return parts;
}

uint64_t memory_of(const ForestOptions& options, uint64_t rows) {
  const uint64_t leaves = options.trees * std::min<uint64_t>(options.samples_per_tree, rows);
  const uint64_t points = std::min<uint64_t>(leaves, rows);
  const uint64_t of_leaf = sizeof(CutTree::Node) + sizeof(CutTree::Leaf) + sizeof(Sampled) +
                           2 * sizeof(float) * options.dimensions;
  const uint64_t of_point = sizeof(float) * options.dimensions + 2 * sizeof(uint32_t);
  return saturating_add(saturating_mul(leaves, of_leaf), saturating_mul(points, of_point));
}

}  // namespace trainyard::forest
