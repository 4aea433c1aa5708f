#include "gradients/adasum/adasum.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "collectives/plan/plan.hpp"
#include "gradients/adasum/pairs.hpp"

namespace trainyard::gradients {
namespace {

using collectives::plan::Range;

// Calls each() with the part of every tensor that is in the range.
template <class Each>
void over_tensors(std::span<const size_t> tensors, Range range, const Each& each) {
  size_t begin = 0;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const size_t end = begin + tensors[tensor];
    const Range part{std::max(begin, range.begin), std::min(end, range.end)};
    if (part.begin < part.end) each(tensor, part);
    begin = end;
  }
}

Range half_of(Range range, bool upper) {
  const size_t middle = range.begin + (range.size() + 1) / 2;
  return upper ? Range{middle, range.end} : Range{range.begin, middle};
}

// Returns the range that a rank holds after the pairs at `distance`: each bit of the rank up to
// that of `distance` selects a half.
Range range_after(int rank, int distance, size_t elements) {
  Range range{0, elements};
  for (int each = 1; each <= distance; each *= 2) range = half_of(range, (rank & each) != 0);
  return range;
}

// Computes one adaptive sum. Ranks beyond the largest power of two first send their values to a
// rank below it.
struct Work {
  collectives::Group& group;
  std::byte* values;
  collectives::Type type;
  std::span<const size_t> tensors;
  std::byte* received;  // as large as the values
  std::string name;
  size_t element_bytes = bytes_of(type);

  int rank() const { return group.rank(); }
  int ranks() const { return group.size(); }
  // Ranks that pair: the largest power of two.
  int pairing() const { return int(std::bit_floor(unsigned(group.size()))); }

  // Sends the range `mine` to the peer and receives `theirs`. A rank without a peer (negative) only
  // takes part in the call.
  Result<void> exchange(int peer, Range mine, Range theirs) {
    std::vector<size_t> counts(size_t(group.size())), received_counts(size_t(group.size()));
    if (peer >= 0) {
      counts[size_t(peer)] = mine.size();
      received_counts[size_t(peer)] = theirs.size();
    }
    collectives::Call call = collectives::calls::all_to_all(
        {values + mine.begin * element_bytes, peer < 0 ? 0 : mine.size(), type},
        {received, peer < 0 ? 0 : theirs.size(), type}, std::move(counts),
        std::move(received_counts));
    call.reducing.name = name;
    return group.run(call);
  }

  // Computes the dot products of this rank's values and the received values over `range`.
  // `ours_is_a`: this rank's values are `a`.
  void dots_over(Range range, bool ours_is_a, std::vector<Dots>& dots) const {
    over_tensors(tensors, range, [&](size_t tensor, Range part) {
      const std::byte* ours = values + part.begin * element_bytes;
      const std::byte* theirs = received + (part.begin - range.begin) * element_bytes;
      dots[tensor] = ours_is_a ? dots_of(type, ours, theirs, part.size())
                               : dots_of(type, theirs, ours, part.size());
    });
  }
  void combine_over(Range range, bool ours_is_a, const std::vector<Dots>& dots) const {
    over_tensors(tensors, range, [&](size_t tensor, Range part) {
      std::byte* ours = values + part.begin * element_bytes;
      const std::byte* theirs = received + (part.begin - range.begin) * element_bytes;
      combine(type, dots[tensor], ours_is_a ? ours : theirs, ours_is_a ? theirs : ours, ours,
              part.size());
    });
  }

  Result<void> combine_with_the_rest(Range whole);
  Result<Range> combine_pairs(int distance, Range range);
  Result<void> sum_dots(int distance);
  Result<void> gather(size_t elements);

  std::vector<Dots> dots = std::vector<Dots>(tensors.size());
  std::vector<Dots> all = std::vector<Dots>(size_t(group.size()) * tensors.size());  // of all ranks
};

// Combines the values of the ranks without a pair with those of a rank that pairs.
Result<void> Work::combine_with_the_rest(Range whole) {
  const bool gives = rank() >= pairing();
  const bool takes = rank() + pairing() < ranks();
  TRY(exchange(gives   ? rank() - pairing()
               : takes ? rank() + pairing()
                       : -1,
               gives ? whole : Range{}, gives ? Range{} : whole));
  if (takes) {
    dots_over(whole, true, dots);
    combine_over(whole, true, dots);
  }
  return ok();
}

// Combines the halves of `range` with the rank at `distance`. Returns the half that this rank
// keeps.
Result<Range> Work::combine_pairs(int distance, Range range) {
  const bool takes_part = rank() < pairing();
  const bool upper = (rank() & distance) != 0;
  const Range kept = half_of(range, upper);
  TRY(exchange(takes_part ? rank() ^ distance : -1, half_of(range, !upper), kept));
  std::fill(dots.begin(), dots.end(), Dots{});
  if (takes_part) dots_over(kept, !upper, dots);
  TRY(sum_dots(distance));
  if (!takes_part) return range;
  combine_over(kept, !upper, dots);
  return kept;
}

// Adds the dot products of all ranks that hold a part of the same two vectors.
Result<void> Work::sum_dots(int distance) {
  TRY(group.all_gather(std::as_bytes(std::span(dots)), std::as_writable_bytes(std::span(all))));
  if (rank() >= pairing()) return ok();
  const auto first = size_t(rank() & ~(2 * distance - 1));
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    Dots sum;
    for (size_t peer = first; peer < first + 2 * size_t(distance); ++peer) {
      const Dots& part = all[peer * tensors.size() + tensor];
      sum.ab += part.ab;
      sum.aa += part.aa;
      sum.bb += part.bb;
    }
    dots[tensor] = sum;
  }
  return ok();
}

// Gathers the finished ranges on all ranks. The ranges are in bit-reversed order of the ranks;
// all_gather returns them in rank order.
Result<void> Work::gather(size_t elements) {
  std::vector<size_t> counts;
  std::vector<Range> ranges;
  for (int peer = 0; peer < ranks(); ++peer) {
    ranges.push_back(peer < pairing() ? range_after(peer, pairing() / 2, elements) : Range{});
    counts.push_back(ranges.back().size());
  }
  const Range own = ranges[size_t(rank())];
  collectives::Call call =
      collectives::calls::all_gather({values + own.begin * element_bytes, own.size(), type},
                                     {received, elements, type}, std::move(counts));
  call.reducing.name = name;
  TRY(group.run(call));
  const std::byte* from = received;
  for (const Range& each : ranges) {
    if (each.size() > 0)
      std::memcpy(values + each.begin * element_bytes, from, each.size() * element_bytes);
    from += each.size() * element_bytes;
  }
  return ok();
}

}  // namespace

std::span<std::byte> AdasumWorkspace::bytes(size_t size) {
  if (size > size_) {
    memory_ = std::make_unique_for_overwrite<std::byte[]>(size);
    size_ = size;
  }
  return {memory_.get(), size};
}

Result<void> adasum(collectives::Group& group, collectives::BufferView values,
                    std::span<const size_t> tensors, AdasumWorkspace& workspace,
                    std::string_view name) {
  const collectives::Type type = values.type;
  if (type != collectives::Type::f64 && type != collectives::Type::f32 &&
      type != collectives::Type::f16 && type != collectives::Type::bf16)
    return invalid("unsupported type for adasum: " + std::string(to_string(type)));
  if (std::accumulate(tensors.begin(), tensors.end(), size_t{0}) != values.count)
    return invalid("the tensors' elements do not add up to the buffer");
  if (group.size() == 1) return ok();
  Work work{group,
            static_cast<std::byte*>(values.data),
            type,
            tensors,
            workspace.bytes(values.count * bytes_of(type)).data(),
            std::string(name)};
  Range range{0, values.count};
  if (work.ranks() > work.pairing()) TRY(work.combine_with_the_rest(range));
  for (int distance = 1; distance < work.pairing(); distance *= 2)
    range = TRY(work.combine_pairs(distance, range));
  return work.gather(values.count);
}

}  // namespace trainyard::gradients
