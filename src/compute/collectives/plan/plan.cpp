#include "collectives/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"
#include "base/enum_table.hpp"
#include "collectives/plan/parts.hpp"

namespace trainyard::collectives::plan {
namespace {

constexpr EnumTable<Operation> kOperationNames{"operation",
                                               {{Operation::allreduce, "allreduce"},
                                                {Operation::reduce_scatter, "reduce_scatter"},
                                                {Operation::all_gather, "all_gather"},
                                                {Operation::broadcast, "broadcast"},
                                                {Operation::reduce, "reduce"},
                                                {Operation::gather, "gather"},
                                                {Operation::scatter, "scatter"},
                                                {Operation::all_to_all, "all_to_all"},
                                                {Operation::barrier, "barrier"}}};

constexpr EnumTable<Algorithm> kAlgorithmNames{"algorithm",
                                               {{Algorithm::one_shot, "one_shot"},
                                                {Algorithm::direct, "direct"},
                                                {Algorithm::ring, "ring"},
                                                {Algorithm::halving_doubling, "halving_doubling"},
                                                {Algorithm::tree, "tree"},
                                                {Algorithm::hierarchical, "hierarchical"}}};

void check(const Plan& plan) {
  CHECK(plan.ranks > 0 && plan.rank >= 0 && plan.rank < plan.ranks, "a rank is one of the ranks");
  CHECK(plan.root >= 0 && plan.root < plan.ranks, "the root is one of the ranks");
  CHECK(exists(plan.operation, plan.algorithm), "the algorithm implements the operation");
}

}  // namespace

std::string_view to_string(Operation operation) { return kOperationNames.text(operation); }
std::string_view to_string(Algorithm algorithm) { return kAlgorithmNames.text(algorithm); }
std::optional<Operation> operation_named(std::string_view name) {
  return kOperationNames.find(name);
}
std::optional<Algorithm> algorithm_named(std::string_view name) {
  return kAlgorithmNames.find(name);
}

Range piece(size_t elements, int part, int parts) {
  CHECK(parts > 0 && part >= 0 && part < parts, "a piece is one of its parts");
  // The first `longer` pieces have one element more. No product overflows.
  const size_t shorter_size = elements / size_t(parts);
  const size_t longer = elements % size_t(parts);
  const size_t index = size_t(part);
  const size_t begin = index * shorter_size + std::min(index, longer);
  return {begin, begin + shorter_size + (index < longer ? 1 : 0)};
}

int around(int part, int parts) { return (part % parts + parts) % parts; }

Range block_of(const Plan& plan, int rank) {
  return plan.blocks.empty() ? piece(plan.elements, rank, plan.ranks) : plan.blocks[size_t(rank)];
}

size_t largest_block(const Plan& plan) {
  size_t largest = 0;
  for (int rank = 0; rank < plan.ranks; ++rank)
    largest = std::max(largest, block_of(plan, rank).size());
  return largest;
}

size_t chunks(size_t elements, size_t chunk_elements) {
  if (elements == 0) return 0;
  return chunk_elements == 0 ? 1 : (elements + chunk_elements - 1) / chunk_elements;
}

Range chunk(Range range, size_t chunk_elements, size_t index) {
  if (chunk_elements == 0) return index == 0 ? range : Range{range.end, range.end};
  const size_t begin = std::min(range.end, range.begin + index * chunk_elements);
  return {begin, std::min(range.end, begin + chunk_elements)};
}

void add_send(Steps& steps, int peer, Range range, Use use, bool from_input) {
  if (range.size() > 0)
    steps.push_back({Action::send, from_input, false, false, use, 0, peer, range});
}
void add_receive(Steps& steps, int peer, Range range) {
  if (range.size() > 0)
    steps.push_back({Action::receive, false, false, false, Use::reduced, 0, peer, range});
}
void add_receive_into(Steps& steps, int peer, Range range) {
  if (range.size() > 0)
    steps.push_back({Action::receive_into, false, false, false, Use::copied, 0, peer, range});
}
void add_reduction(Steps& steps, Range range, int operands, int before_ours, bool last,
                   bool from_input, bool guarded) {
  if (range.size() > 0)
    steps.push_back({Action::reduce, from_input, last, guarded, Use::copied, uint16_t(operands),
                     before_ours, range});
}

uint64_t message_number(const Plan& plan, const Step& step) {
  // The ranges at the two ends differ, but there is only one message between two ranks.
  if (plan.operation == Operation::all_to_all || plan.operation == Operation::barrier) return 0;
  return uint64_t(step.range.begin) * 2 + (step.use == Use::copied ? 0 : 1);
}

bool exists(Operation operation, Algorithm algorithm) {
  switch (operation) {
    case Operation::allreduce:
      return algorithm != Algorithm::hierarchical;
    case Operation::reduce_scatter:
    case Operation::all_gather:
      return algorithm == Algorithm::direct || algorithm == Algorithm::ring;
    case Operation::broadcast:
    case Operation::reduce:
      return algorithm == Algorithm::one_shot || algorithm == Algorithm::tree;
    case Operation::gather:
    case Operation::scatter:
    case Operation::all_to_all:
      return algorithm == Algorithm::direct;
    case Operation::barrier:
      return algorithm == Algorithm::tree || algorithm == Algorithm::one_shot;
  }
  return false;
}

bool reads_input(Operation operation, Algorithm algorithm) {
  if (operation == Operation::gather || operation == Operation::scatter ||
      operation == Operation::all_to_all)
    return true;
  if (operation == Operation::reduce) return algorithm == Algorithm::one_shot;
  return (operation == Operation::allreduce || operation == Operation::reduce_scatter) &&
         (algorithm == Algorithm::one_shot || algorithm == Algorithm::direct);
}

size_t rounds(const Plan& plan) {
  check(plan);
  if (plan.ranks == 1) return 0;
  switch (plan.algorithm) {
    case Algorithm::one_shot:
      return one_shot::rounds(plan);
    case Algorithm::direct:
      return direct::rounds(plan);
    case Algorithm::ring:
      return ring::rounds(plan);
    case Algorithm::halving_doubling:
      return halving_doubling::rounds(plan);
    case Algorithm::tree:
      return tree::rounds(plan);
    case Algorithm::hierarchical:
      break;
  }
  return 0;
}

void add_round(const Plan& plan, size_t round, Steps& steps) {
  switch (plan.algorithm) {
    case Algorithm::one_shot:
      return one_shot::add_round(plan, round, steps);
    case Algorithm::direct:
      return direct::add_round(plan, round, steps);
    case Algorithm::ring:
      return ring::add_round(plan, round, steps);
    case Algorithm::halving_doubling:
      return halving_doubling::add_round(plan, round, steps);
    case Algorithm::tree:
      return tree::add_round(plan, round, steps);
    case Algorithm::hierarchical:
      break;
  }
}

Expression expression(const Plan& plan, size_t element) {
  check(plan);
  switch (plan.algorithm) {
    case Algorithm::ring:
      return ring::expression(plan, element);
    case Algorithm::halving_doubling:
      return halving_doubling::expression(plan, element);
    case Algorithm::tree:
      return tree::expression(plan);
    default:
      break;
  }
  // one_shot, direct: one reduction over all ranks in their order.
  Expression all;
  for (int rank = 0; rank < plan.ranks; ++rank) all.parts.push_back({rank, {}});
  return all;
}

Cost cost(const Plan& plan) {
  check(plan);
  if (plan.ranks == 1) return {};
  switch (plan.algorithm) {
    case Algorithm::one_shot:
      return one_shot::cost(plan);
    case Algorithm::direct:
      return direct::cost(plan);
    case Algorithm::ring:
      return ring::cost(plan);
    case Algorithm::halving_doubling:
      return halving_doubling::cost(plan);
    case Algorithm::tree:
      return tree::cost(plan);
    case Algorithm::hierarchical:
      break;
  }
  return {};
}

}  // namespace trainyard::collectives::plan
