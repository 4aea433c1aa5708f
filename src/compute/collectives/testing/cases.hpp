// Lists every plan, with and without chunks, for tests that cover all plans.
//
// Threads: plain values. Lifetime: blocks outlive the plans that point to them.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "collectives/plan/plan.hpp"

namespace trainyard::collectives::testing {

using plan::Algorithm;
using plan::Operation;
using plan::Plan;
using plan::Range;

inline constexpr int kRanksMax = 17;

struct Case {
  Operation operation;
  Algorithm algorithm;
  size_t chunk_elements;
};

inline std::string name_of(const Case& one, int ranks, size_t elements) {
  return std::string(to_string(one.operation)) + " " + std::string(to_string(one.algorithm)) +
         ", chunks of " + std::to_string(one.chunk_elements) + ", " + std::to_string(ranks) +
         " ranks, " + std::to_string(elements) + " elements";
}

inline const Case kReductionsOfAll[] = {
    {Operation::allreduce, Algorithm::one_shot, 0},
    {Operation::allreduce, Algorithm::one_shot, 5},
    {Operation::allreduce, Algorithm::direct, 0},
    {Operation::allreduce, Algorithm::direct, 7},
    {Operation::allreduce, Algorithm::ring, 0},
    {Operation::allreduce, Algorithm::ring, 2},
    {Operation::allreduce, Algorithm::halving_doubling, 0},
    {Operation::allreduce, Algorithm::tree, 0},
    {Operation::allreduce, Algorithm::tree, 6},
    {Operation::reduce_scatter, Algorithm::direct, 0},
    {Operation::reduce_scatter, Algorithm::direct, 2},
    {Operation::reduce_scatter, Algorithm::ring, 0},
    {Operation::reduce_scatter, Algorithm::ring, 2},
    {Operation::reduce, Algorithm::one_shot, 4},
    {Operation::reduce, Algorithm::tree, 0},
    {Operation::reduce, Algorithm::tree, 5},
};

inline const Case kMovesOfAll[] = {
    {Operation::all_gather, Algorithm::ring, 0},    {Operation::all_gather, Algorithm::ring, 3},
    {Operation::all_gather, Algorithm::direct, 0},  {Operation::all_gather, Algorithm::direct, 3},
    {Operation::broadcast, Algorithm::tree, 0},     {Operation::broadcast, Algorithm::tree, 4},
    {Operation::broadcast, Algorithm::one_shot, 0}, {Operation::broadcast, Algorithm::one_shot, 4},
    {Operation::gather, Algorithm::direct, 0},      {Operation::scatter, Algorithm::direct, 0},
    {Operation::barrier, Algorithm::tree, 0},       {Operation::barrier, Algorithm::one_shot, 0}};

inline std::vector<Case> all_cases() {
  std::vector<Case> cases(std::begin(kReductionsOfAll), std::end(kReductionsOfAll));
  cases.insert(cases.end(), std::begin(kMovesOfAll), std::end(kMovesOfAll));
  return cases;
}

// Returns the names of allreduce's algorithms, except hierarchical, which needs several hosts.
inline std::vector<std::string> allreduce_plans() {
  std::vector<std::string> names;
  for (int i = 0; i <= int(Algorithm::hierarchical); ++i)
    if (exists(Operation::allreduce, Algorithm(i))) names.emplace_back(to_string(Algorithm(i)));
  return names;
}

// Returns blocks of different sizes; some are empty.
inline std::vector<Range> uneven_blocks(int ranks, size_t elements) {
  std::vector<Range> blocks;
  size_t begin = 0;
  size_t left = elements;
  for (int rank = 0; rank < ranks; ++rank) {
    const size_t size =
        rank + 1 == ranks ? left
                          : std::min(left, size_t(rank * rank % 4) * elements / size_t(2 * ranks));
    blocks.push_back({begin, begin + size});
    begin += size;
    left -= size;
  }
  return blocks;
}

inline bool has_blocks(Operation operation) {
  return operation == Operation::reduce_scatter || operation == Operation::all_gather ||
         operation == Operation::gather || operation == Operation::scatter;
}

inline Plan plan_of(const Case& one, int rank, int ranks, size_t elements,
                    std::span<const Range> blocks) {
  Plan plan;
  plan.operation = one.operation;
  plan.algorithm = one.algorithm;
  plan.rank = rank;
  plan.ranks = ranks;
  plan.elements = elements;
  plan.chunk_elements = one.chunk_elements;
  plan.root = one.operation == Operation::allreduce ? 0 : (ranks - 1) * 2 / 3;
  if (has_blocks(one.operation)) plan.blocks = blocks;
  return plan;
}

}  // namespace trainyard::collectives::testing
