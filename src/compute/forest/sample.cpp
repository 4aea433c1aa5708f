#include "forest/sample.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace trainyard::forest {
namespace {

using collectives::Group;

struct Chosen {  // a row of one host in the sample of one tree
  Candidate candidate;
  uint64_t tree = 0;
  uint64_t point = 0;  // index among the points that its host sends
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_bytes(std::span(values));
}

// Returns how many of this rank's candidates are among the `samples` smallest of all ranks.
Result<size_t> count_chosen(const std::vector<Candidate>& own, size_t samples, Group& group) {
  // The key of the first element is the number of candidates.
  std::vector<Candidate> mine(samples + 1), all((samples + 1) * size_t(group.size()));
  mine[0].key = own.size();
  std::copy(own.begin(), own.end(), mine.begin() + 1);
  TRY(group.all_gather(bytes_of(mine), std::as_writable_bytes(std::span(all))));
  std::vector<Candidate> united;
  for (size_t rank = 0; rank < size_t(group.size()); ++rank) {
    const auto part = std::span(all).subspan(rank * (samples + 1), samples + 1);
    if (part[0].key > samples) return corrupt("a rank has too many candidates");
    united.insert(united.end(), part.begin() + 1, part.begin() + 1 + ptrdiff_t(part[0].key));
  }
  if (united.size() <= samples) return own.size();
  std::nth_element(united.begin(), united.begin() + ptrdiff_t(samples), united.end());
  const Candidate& first_left_out = united[samples];
  return size_t(std::ranges::lower_bound(own, first_left_out) - own.begin());
}

// The rows that one host sends.
struct Part {
  std::vector<float> points;
  std::vector<Chosen> chosen;
};

Result<Part> choose(const Sampler& own, Group& group) {
  const ForestOptions& options = own.options();
  Part part;
  std::vector<uint64_t> point_of_slot(own.points().slots(), UINT64_MAX);
  uint64_t points = 0;
  for (size_t tree = 0; tree < options.trees; ++tree) {
    const auto candidates = own.candidates(tree);
    const size_t count = TRY(count_chosen(candidates, options.samples_per_tree, group));
    const auto slots = own.slots(tree, count);
    for (size_t i = 0; i < count; ++i) {
      uint64_t& point = point_of_slot[slots[i]];
      if (point == UINT64_MAX) {
        point = points++;
        const auto values = own.points().point(slots[i]);
        part.points.insert(part.points.end(), values.begin(), values.end());
      }
      part.chosen.push_back({candidates[i], tree, point});
    }
  }
  return part;
}

// Numbers points in the order of their first use by tree and key, which does not depend on the
// hosts.
GatheredSample arrange(std::vector<Part> parts, const ForestOptions& options) {
  std::vector<std::vector<std::tuple<Candidate, size_t, uint64_t>>> trees(options.trees);
  for (size_t rank = 0; rank < parts.size(); ++rank)
    for (const Chosen& each : parts[rank].chosen)
      trees[each.tree].emplace_back(each.candidate, rank, each.point);
  std::vector<std::vector<uint32_t>> numbers;
  for (const Part& part : parts)
    numbers.emplace_back(part.points.size() / options.dimensions, UINT32_MAX);
  GatheredSample sample;
  sample.trees.resize(options.trees);
  uint32_t next = 0;
  for (size_t tree = 0; tree < options.trees; ++tree) {
    std::ranges::sort(trees[tree]);
    for (const auto& [candidate, rank, point] : trees[tree]) {
      uint32_t& number = numbers[rank][point];
      if (number == UINT32_MAX) {
        number = next++;
        const auto from = parts[rank].points.begin() + ptrdiff_t(point * options.dimensions);
        sample.points.insert(sample.points.end(), from, from + ptrdiff_t(options.dimensions));
      }
      sample.trees[tree].push_back({candidate.key, number});
    }
  }
  return sample;
}

Result<void> check_part(const Part& part, const ForestOptions& options) {
  const uint64_t points = part.points.size() / options.dimensions;
  for (const Chosen& each : part.chosen)
    if (each.tree >= options.trees || each.point >= points)
      return corrupt("a rank sent a row of an unknown tree or point");
  return ok();
}

}  // namespace

Sampler::Sampler(const ForestOptions& options, uint64_t memory_max)
    : options_(options),
      memory_max_(memory_max),
      points_(options.dimensions),
      trees_(options.trees),
      key_limits_(options.trees, UINT64_MAX) {
  for (uint64_t tree = 0; tree < options.trees; ++tree)
    salts_.push_back(salt_of(tree, options.seed));
}

Result<void> Sampler::offer(RowId row, std::span<const float> point) {
  const uint64_t hash = hash_of(row, options_.seed);
  ++rows_;
  std::optional<uint32_t> slot;
  for (size_t tree = 0; tree < options_.trees; ++tree) {
    const uint64_t key = key_of(hash, salts_[tree]);
    if (key > key_limits_[tree]) continue;
    auto& entries = trees_[tree];
    const Candidate candidate{key, row};
    const bool is_full = entries.size() == options_.samples_per_tree;
    if (is_full && !(candidate < entries.front().candidate)) continue;
    if (!slot) slot = points_.add(point);
    if (is_full) {
      std::ranges::pop_heap(entries, has_smaller_key);
      points_.release(entries.back().slot);
      entries.pop_back();
    }
    entries.push_back({candidate, *slot});
    std::ranges::push_heap(entries, has_smaller_key);
    points_.keep(*slot);
    if (entries.size() == options_.samples_per_tree)
      key_limits_[tree] = entries.front().candidate.key;
  }
  if (!slot) return ok();
  points_.release(*slot);
  if (memory_max_ > 0 && memory_of(options_, points_.size()) > memory_max_)
    return exhausted("num_trees " + std::to_string(options_.trees) + ", num_samples_per_tree " +
                     std::to_string(options_.samples_per_tree) + " and feature_dim " +
                     std::to_string(options_.dimensions) + " need more memory than the " +
                     human_bytes(memory_max_) + " of this host");
  return ok();
}

std::vector<Candidate> Sampler::candidates(size_t tree) const {
  std::vector<Candidate> sorted;
  for (const Entry& each : trees_[tree]) sorted.push_back(each.candidate);
  std::ranges::sort(sorted);
  return sorted;
}

std::vector<uint32_t> Sampler::slots(size_t tree, size_t count) const {
  std::vector<Entry> sorted = trees_[tree];
  std::ranges::sort(sorted, has_smaller_key);
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < count; ++i) slots.push_back(sorted[i].slot);
  return slots;
}

Result<std::optional<GatheredSample>> gather_sample(const Sampler& own, Group& group) {
  const ForestOptions& options = own.options();
  Part mine = TRY(choose(own, group));
  const std::vector<uint64_t> sizes = {mine.points.size(), mine.chosen.size(), own.rows()};
  std::vector<uint64_t> all(sizes.size() * size_t(group.size()));
  TRY(group.all_gather(bytes_of(sizes), std::as_writable_bytes(std::span(all))));
  if (group.rank() != 0) {
    TRY(group.send(0, collectives::buffer_view(std::span<const float>(mine.points)), "points"));
    TRY(group.send(0, collectives::buffer_view(bytes_of(mine.chosen)), "chosen"));
    return std::optional<GatheredSample>();
  }
  const uint64_t chosen_max = options.trees * options.samples_per_tree;
  std::vector<Part> parts(size_t(group.size()));
  parts[0] = std::move(mine);
  uint64_t rows = all[2], chosen = parts[0].chosen.size();
  for (int rank = 1; rank < group.size(); ++rank) {
    const uint64_t* size = &all[size_t(rank) * sizes.size()];
    chosen += size[1];
    if (chosen > chosen_max || size[1] > chosen_max || size[0] % options.dimensions != 0 ||
        size[0] / options.dimensions > size[1])
      return corrupt("rank " + std::to_string(rank) + " sends more rows than the trees have");
    Part& part = parts[size_t(rank)];
    part.points.resize(size[0]);
    part.chosen.resize(size[1]);
    TRY(group.receive(rank, collectives::buffer_view(std::span(part.points)), "points"));
    TRY(group.receive(
        rank, collectives::buffer_view(std::as_writable_bytes(std::span(part.chosen))), "chosen"));
    TRY(check_part(part, options));
    rows += size[2];
  }
  GatheredSample sample = arrange(std::move(parts), options);
  sample.rows = rows;
  return std::optional(std::move(sample));
}

}  // namespace trainyard::forest
