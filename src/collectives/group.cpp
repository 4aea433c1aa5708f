#include "collectives/group.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.hpp"
#include "collectives/plan/plan.hpp"
#include "collectives/run.hpp"
#include "collectives/transport.hpp"
#include "collectives/transport/memory/memory_transport.hpp"
#include "collectives/transport/tcp/tcp_transport.hpp"

namespace trainyard::collectives {
namespace {

enum class Operation : uint64_t { allreduce = 1, broadcast, all_gather };

// A digest of what an operation is, so that ranks that call different ones find out (FNV-1a over the words).
uint64_t label(Operation operation, uint64_t size, uint64_t detail) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const uint64_t word : {uint64_t(operation), size, detail}) {
    for (int shift = 0; shift < 64; shift += 8) {
      digest = (digest ^ ((word >> shift) & 0xff)) * 0x100000001b3;
    }
  }
  return digest;
}

using Reduce = void (*)(std::span<std::byte>, std::span<const std::byte>);

// Both point into buffers of whole numbers, aligned for them: the caller's own, or one from operator new.
template <class Number, class Combine>
void combine(std::span<std::byte> data, std::span<const std::byte> received) {
  auto* ours = reinterpret_cast<Number*>(data.data());
  const auto* theirs = reinterpret_cast<const Number*>(received.data());
  const size_t numbers = data.size() / sizeof(Number);
  for (size_t i = 0; i < numbers; ++i) ours[i] = Combine()(theirs[i], ours[i]);
}

struct Smaller {
  template <class Number>
  Number operator()(Number a, Number b) const {
    return std::min(a, b);
  }
};

struct Larger {
  template <class Number>
  Number operator()(Number a, Number b) const {
    return std::max(a, b);
  }
};

template <class Number>
Reduce reduce_by(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return combine<Number, std::plus<Number>>;
    case Reduction::minimum:
      return combine<Number, Smaller>;
    case Reduction::maximum:
      return combine<Number, Larger>;
  }
  return nullptr;
}

}  // namespace

Group::Group(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}
Group::~Group() = default;

int Group::rank() const { return transport_->rank(); }
int Group::size() const { return transport_->size(); }

template <class Number>
Result<void> Group::allreduce_numbers(std::span<Number> values, Reduction reduction) {
  const uint64_t detail = uint64_t(reduction) << 8 | sizeof(Number);
  const Tag tag{operations_++, label(Operation::allreduce, values.size(), detail)};
  const auto data = std::as_writable_bytes(values);
  scratch_.resize(std::max(scratch_.size(), data.size()));
  const Buffer buffer{data, std::span(scratch_).first(data.size()), sizeof(Number),
                      reduce_by<Number>(reduction)};
  return Run(plan::ring_allreduce(rank(), size(), values.size()), tag, buffer, *transport_)
      .finish()
      .in("allreduce");
}

Result<void> Group::allreduce(std::span<float> values, Reduction reduction) {
  return allreduce_numbers(values, reduction);
}
Result<void> Group::allreduce(std::span<double> values, Reduction reduction) {
  return allreduce_numbers(values, reduction);
}

Result<void> Group::broadcast(std::span<std::byte> bytes, int root) {
  CHECK(root >= 0 && root < size(), "the root is one of the ranks");
  const Tag tag{operations_++, label(Operation::broadcast, bytes.size(), uint64_t(root))};
  scratch_.resize(std::max(scratch_.size(), bytes.size()));
  const Buffer buffer{bytes, std::span(scratch_).first(bytes.size())};
  return Run(plan::tree_broadcast(rank(), size(), bytes.size(), root), tag, buffer, *transport_)
      .finish()
      .in("broadcast");
}

Result<void> Group::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.size() == mine.size() * size_t(size()), "there is room for what every rank brings");
  std::copy(mine.begin(), mine.end(), all.begin() + ptrdiff_t(mine.size()) * rank());
  std::vector<plan::Range> blocks;
  for (size_t i = 0; i < size_t(size()); ++i) blocks.push_back({i * mine.size(), (i + 1) * mine.size()});
  const Tag tag{operations_++, label(Operation::all_gather, all.size(), 0)};
  scratch_.resize(std::max(scratch_.size(), all.size()));
  const Buffer buffer{all, std::span(scratch_).first(all.size())};
  return Run(plan::ring_all_gather(rank(), blocks), tag, buffer, *transport_).finish().in("all_gather");
}

Result<std::vector<std::string>> Group::all_gather(std::string_view mine) {
  const uint64_t length = mine.size();
  auto lengths = std::vector<uint64_t>(size_t(size()));
  TRY(all_gather(std::as_bytes(std::span(&length, 1)), std::as_writable_bytes(std::span(lengths))));

  std::vector<plan::Range> blocks;
  uint64_t total = 0;
  for (const uint64_t each : lengths) {
    if (each > gather_bytes_max - total) {
      return exhausted("all_gather: the ranks bring more than " + std::to_string(gather_bytes_max) +
                       " bytes together");
    }
    blocks.push_back({total, total + each});
    total += each;
  }
  std::string all(total, '\0');
  std::copy(mine.begin(), mine.end(), all.begin() + ptrdiff_t(blocks[size_t(rank())].begin));
  const Tag tag{operations_++, label(Operation::all_gather, total, 1)};
  scratch_.resize(std::max<size_t>(scratch_.size(), total));
  const Buffer buffer{std::as_writable_bytes(std::span(all)), std::span(scratch_).first(total)};
  TRY(Run(plan::ring_all_gather(rank(), blocks), tag, buffer, *transport_).finish().in("all_gather"));

  std::vector<std::string> texts;
  for (const plan::Range& block : blocks) texts.push_back(all.substr(block.begin, block.size()));
  return texts;
}

Result<void> Group::barrier() {
  // To hold every rank's byte is to know that every rank has come.
  const std::byte here{1};
  auto all = std::vector<std::byte>(size_t(size()));
  return all_gather(std::span(&here, 1), std::span(all)).in("barrier");
}

void Group::abandon(std::string_view why) { transport_->abandon(why); }

Result<std::unique_ptr<Group>> join_over_tcp(TcpOptions options) {
  auto transport = TRY(connect_tcp(std::move(options)).in("joining the ranks"));
  return std::make_unique<Group>(std::move(transport));
}

std::vector<std::unique_ptr<Group>> join_in_memory(int size) {
  std::vector<std::unique_ptr<Group>> groups;
  for (auto& transport : connect_in_memory(size))
    groups.push_back(std::make_unique<Group>(std::move(transport)));
  return groups;
}

}  // namespace trainyard::collectives
