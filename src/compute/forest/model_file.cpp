#include "forest/model_file.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "base/bytes/little_endian.hpp"
#include "base/fnv.hpp"
#include "base/text.hpp"

namespace trainyard::forest {
namespace {

constexpr std::string_view kMagic = "TYFOREST";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kLeafMark = UINT32_MAX;  // in place of a dimension
constexpr size_t kNodeBytes = 12, kSampledBytes = 12, kChecksumBytes = 8;

void append_u32(std::string& bytes, uint32_t value) { append_little_endian(bytes, value, 4); }
void append_u64(std::string& bytes, uint64_t value) { append_little_endian(bytes, value, 8); }
void append_float(std::string& bytes, float value) {
  append_u32(bytes, std::bit_cast<uint32_t>(value));
}

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}
  uint64_t integer(size_t bytes) {
    if (rest_.size() < bytes) {
      short_ = true;
      rest_ = {};
      return 0;
    }
    const uint64_t value = little_endian(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
    return value;
  }
  uint32_t u32() { return uint32_t(integer(4)); }
  uint64_t u64() { return integer(8); }
  float f32() { return std::bit_cast<float>(u32()); }
  bool has(uint64_t count, uint64_t bytes) const { return count <= rest_.size() / bytes; }
  bool is_short() const { return short_; }
  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  bool short_ = false;
};

// Numbers the used points in the order of their first use, which does not depend on free slots.
struct Numbering {
  std::vector<uint32_t> number_of_slot;
  std::vector<uint32_t> slots;  // by number

  explicit Numbering(const Forest& forest) : number_of_slot(forest.points().slots(), UINT32_MAX) {
    for (size_t tree = 0; tree < forest.options().trees; ++tree) {
      for (const Sampled& each : ordered(forest.sample(tree))) use(each.point);
      walk(forest.tree(tree), [&](const CutTree& of, CutTree::Ref at) {
        if (CutTree::is_leaf(at)) use(of.leaf(at).slot);
      });
    }
  }
  void use(uint32_t slot) {
    if (number_of_slot[slot] != UINT32_MAX) return;
    number_of_slot[slot] = uint32_t(slots.size());
    slots.push_back(slot);
  }

  static std::vector<Sampled> ordered(std::span<const Sampled> sample) {
    std::vector<Sampled> sorted(sample.begin(), sample.end());
    std::ranges::sort(sorted, {}, &Sampled::key);
    return sorted;
  }
  // Visits nodes and leaves in preorder: a node, then its left subtree, then its right subtree.
  template <class Visit>
  static void walk(const CutTree& tree, const Visit& visit) {
    std::vector<CutTree::Ref> open;
    if (tree.root() != CutTree::kNone) open.push_back(tree.root());
    while (!open.empty()) {
      const CutTree::Ref at = open.back();
      open.pop_back();
      visit(tree, at);
      if (!CutTree::is_leaf(at)) open.insert(open.end(), {tree.node(at).right, tree.node(at).left});
    }
  }
};

struct StoredNode {
  uint32_t dimension;  // or kLeafMark
  uint32_t value;      // the bits of the cut, or a point
  uint32_t mass;       // the number of equal points in a leaf
};

// Joins nodes that are stored in preorder, from the last to the first.
Result<void> read_tree(Reader& reader, const ForestOptions& options, const PointStore& points,
                       CutTree& tree) {
  const uint32_t count = reader.u32();
  if (count == 0) return ok();
  if (count > 2 * options.samples_per_tree || count % 2 == 0 || !reader.has(count, kNodeBytes))
    return corrupt("a tree has " + std::to_string(count) + " nodes");
  std::vector<StoredNode> stored(count);
  for (StoredNode& each : stored) each = {reader.u32(), reader.u32(), reader.u32()};
  std::vector<CutTree::Ref> open;  // the left subtree of the next parent is on top
  uint64_t mass = 0;
  for (size_t i = count; i-- > 0;) {
    const StoredNode& each = stored[i];
    if (each.dimension == kLeafMark) {
      if (each.value >= points.slots() || each.mass == 0)
        return corrupt("a leaf has an invalid point or mass");
      mass += each.mass;
      open.push_back(tree.append_leaf(each.value, each.mass));
      continue;
    }
    if (open.size() < 2 || each.dimension >= options.dimensions)
      return corrupt("a node has an invalid dimension or invalid children");
    const CutTree::Ref left = open.back(), right = open[open.size() - 2];
    open.resize(open.size() - 2);
    const auto joined =
        tree.join(each.dimension, std::bit_cast<float>(each.value), left, right, points);
    if (!joined) return corrupt("a point is on the wrong side of a cut");
    open.push_back(*joined);
  }
  if (open.size() != 1) return corrupt("a tree has several roots");
  if (mass > options.samples_per_tree) return corrupt("a tree has too many points");
  tree.set_root(open.front());
  return ok();
}

// Returns true if each point occurs in the tree as often as in the sample, so that it can be
// removed.
bool matches(const CutTree& tree, const std::vector<Sampled>& sample, const PointStore& points) {
  std::vector<std::span<const float>> sampled, stored;
  for (const Sampled& each : sample) sampled.push_back(points.point(each.point));
  Numbering::walk(tree, [&](const CutTree& of, CutTree::Ref at) {
    if (CutTree::is_leaf(at))
      stored.insert(stored.end(), of.leaf(at).mass, points.point(of.leaf(at).slot));
  });
  const auto less = [](std::span<const float> a, std::span<const float> b) {
    return std::ranges::lexicographical_compare(a, b);
  };
  std::ranges::sort(sampled, less);
  std::ranges::sort(stored, less);
  return std::ranges::equal(
      sampled, stored,
      [](std::span<const float> a, std::span<const float> b) { return std::ranges::equal(a, b); });
}

Result<std::vector<Sampled>> read_sample(Reader& reader, const ForestOptions& options,
                                         size_t points) {
  const uint32_t count = reader.u32();
  if (count > options.samples_per_tree || !reader.has(count, kSampledBytes))
    return corrupt("a sample has " + std::to_string(count) + " rows");
  std::vector<Sampled> sample(count);
  for (Sampled& each : sample) {
    each.key = reader.u64();
    each.point = reader.u32();
    if (each.point >= points) return corrupt("a sample has an unknown point");
  }
  // Equal keys would have no order. The uniform keys of a tree are never equal.
  const auto is_out_of_order = [](const Sampled& a, const Sampled& b) { return a.key >= b.key; };
  if (std::ranges::adjacent_find(sample, is_out_of_order) != sample.end())
    return corrupt("the keys of a sample are not ascending");
  return sample;
}

Result<ForestOptions> read_options(Reader& reader) {
  ForestOptions options;
  options.dimensions = reader.u32();
  options.trees = reader.u32();
  options.samples_per_tree = reader.u32();
  options.seed = reader.u64();
  options.time_decay = std::bit_cast<double>(reader.u64());
  const auto within = [](size_t value, int64_t most) { return value > 0 && value <= size_t(most); };
  if (!within(options.dimensions, kDimensionsMax) || !within(options.trees, kTreesMax) ||
      !within(options.samples_per_tree, kSamplesPerTreeMax))
    return corrupt("dimensions, trees or rows per tree are out of range");
  if (!(options.time_decay >= 0) || !std::isfinite(options.time_decay))
    return corrupt("the time decay is not a positive number");
  return options;
}

}  // namespace

std::string encode_forest(const Forest& forest) {
  const ForestOptions& options = forest.options();
  const Numbering numbering(forest);
  std::string bytes(kMagic);
  append_u32(bytes, kVersion);
  append_u32(bytes, uint32_t(options.dimensions));
  append_u32(bytes, uint32_t(options.trees));
  append_u32(bytes, uint32_t(options.samples_per_tree));
  append_u64(bytes, options.seed);
  append_u64(bytes, std::bit_cast<uint64_t>(options.time_decay));
  append_u64(bytes, forest.rows_seen());
  append_u32(bytes, uint32_t(numbering.slots.size()));
  for (const uint32_t slot : numbering.slots)
    for (const float value : forest.points().point(slot)) append_float(bytes, value);
  for (size_t tree = 0; tree < options.trees; ++tree) {
    append_u64(bytes, forest.tree(tree).random_state());
    const auto sample = Numbering::ordered(forest.sample(tree));
    append_u32(bytes, uint32_t(sample.size()));
    for (const Sampled& each : sample) {
      append_u64(bytes, each.key);
      append_u32(bytes, numbering.number_of_slot[each.point]);
    }
    const size_t leaves = forest.tree(tree).leaves();
    append_u32(bytes, leaves == 0 ? 0 : uint32_t(2 * leaves - 1));
    Numbering::walk(forest.tree(tree), [&](const CutTree& of, CutTree::Ref at) {
      if (CutTree::is_leaf(at)) {
        append_u32(bytes, kLeafMark);
        append_u32(bytes, numbering.number_of_slot[of.leaf(at).slot]);
        append_u32(bytes, of.leaf(at).mass);
      } else {
        append_u32(bytes, of.node(at).dimension);
        append_float(bytes, of.node(at).cut);
        append_u32(bytes, 0);
      }
    });
  }
  append_u64(bytes, fnv1a(bytes));
  return bytes;
}

Result<Forest> decode_forest(std::string_view bytes, uint64_t memory_max) {
  if (!bytes.starts_with(kMagic)) return corrupt("the file is not a random cut forest");
  if (bytes.size() < kMagic.size() + kChecksumBytes) return corrupt("the file is truncated");
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  Reader reader(body.substr(kMagic.size()));
  if (const uint32_t version = reader.u32(); version != kVersion)
    return corrupt("unsupported version " + std::to_string(version) + ": expected " +
                   std::to_string(kVersion));
  if (fnv1a(body) != little_endian(bytes.substr(body.size())))
    return corrupt("invalid checksum: the file is damaged or truncated");
  const ForestOptions options = TRY(read_options(reader));
  Forest::Parts parts{PointStore(options.dimensions), {}, {}, reader.u64()};
  const uint32_t count = reader.u32();
  if (!reader.has(count, 4 * options.dimensions))
    return corrupt("the file has fewer points than its header states");
  if (const uint64_t bytes_needed = memory_of(options, count); bytes_needed > memory_max)
    return exhausted("the forest may need " + human_bytes(bytes_needed) + " of memory");
  std::vector<float> point(options.dimensions);
  for (uint32_t i = 0; i < count; ++i) {
    for (float& value : point)
      if (value = reader.f32(); !std::isfinite(value)) return corrupt("a point is not finite");
    parts.points.add(point);
  }
  for (size_t tree = 0; tree < options.trees; ++tree) {
    const uint64_t state = reader.u64();
    parts.trees.emplace_back(options.dimensions, state);
    parts.samples.push_back(TRY(read_sample(reader, options, count)));
    TRY(read_tree(reader, options, parts.points, parts.trees.back()));
    if (!matches(parts.trees.back(), parts.samples.back(), parts.points))
      return corrupt("the points of a tree differ from its sample");
  }
  if (reader.is_short() || reader.left() != 0)
    return corrupt("the length of the file does not match its header");
  return Forest::from_parts(options, std::move(parts));
}

}  // namespace trainyard::forest
