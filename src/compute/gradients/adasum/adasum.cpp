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

// Calls `each` with the part of every tensor in the range.
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

// Returns the range that a rank holds after the pairs at `distance`: every bit of the rank up to
// there chose a half.
Range range_after(int rank, int distance, size_t elements) {
  Range range{0, elements};
  for (int each = 1; each <= distance; each *= 2) range = half_of(range, (rank & each) != 0);
  return range;
}

struct Work {
  collectives::Group& group;
  std::byte* values;
  collectives::Type type;
  std::span<const size_t> tensors;
  std::byte* received;  // as large as the values
  std::string name;
  size_t element_bytes = bytes_of(type);

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
};

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
  const int ranks = group.size();
  const int rank = group.rank();
  if (ranks == 1) return ok();
  const int pairing = int(std::bit_floor(unsigned(ranks)));
  const Range whole{0, values.count};
  Work work{group,
            static_cast<std::byte*>(values.data),
            type,
            tensors,
            workspace.bytes(values.count * bytes_of(type)).data(),
            std::string(name)};
  std::vector<Dots> dots(tensors.size());

  if (ranks > pairing) {
    const bool gives = rank >= pairing;
    const bool takes = rank + pairing < ranks;
    TRY(work.exchange(gives   ? rank - pairing
                      : takes ? rank + pairing
                              : -1,
                      gives ? whole : Range{}, gives ? Range{} : whole));
    if (takes) {
      work.dots_over(whole, true, dots);
      work.combine_over(whole, true, dots);
    }
  }

  Range range = whole;
  std::vector<Dots> all(size_t(ranks) * tensors.size());
  for (int distance = 1; distance < pairing; distance *= 2) {
    const bool takes_part = rank < pairing;
    const bool upper = (rank & distance) != 0;
    const Range kept = half_of(range, upper);
    TRY(work.exchange(takes_part ? rank ^ distance : -1, half_of(range, !upper), kept));
    std::fill(dots.begin(), dots.end(), Dots{});
    if (takes_part) work.dots_over(kept, !upper, dots);
    TRY(group.all_gather(std::as_bytes(std::span(dots)), std::as_writable_bytes(std::span(all))));
    if (!takes_part) continue;
    const auto first = size_t(rank & ~(2 * distance - 1));
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
    work.combine_over(kept, !upper, dots);
    range = kept;
  }

  // The ranges are in bit-reversed order of the ranks; all_gather returns them in rank order.
  std::vector<size_t> counts;
  std::vector<Range> ranges;
  for (int peer = 0; peer < ranks; ++peer) {
    ranges.push_back(peer < pairing ? range_after(peer, pairing / 2, values.count) : Range{});
    counts.push_back(ranges.back().size());
  }
  const size_t element_bytes = work.element_bytes;
  const Range own = ranges[size_t(rank)];
  collectives::Call call =
      collectives::calls::all_gather({work.values + own.begin * element_bytes, own.size(), type},
                                     {work.received, values.count, type}, std::move(counts));
  call.reducing.name = work.name;
  TRY(group.run(call));
  const std::byte* from = work.received;
  for (const Range& each : ranges) {
    if (each.size() > 0)
      std::memcpy(work.values + each.begin * element_bytes, from, each.size() * element_bytes);
    from += each.size() * element_bytes;
  }
  return ok();
}

}  // namespace trainyard::gradients
