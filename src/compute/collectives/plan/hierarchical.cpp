#include <algorithm>
#include <map>

#include "base/check.hpp"
#include "collectives/plan/parts.hpp"

// Hierarchical allreduce
//
// The ranks of each host reduce-scatter: afterwards local rank l holds the host's sum of piece l.
// Then, for every l at the same time, the local ranks l of all hosts allreduce piece l: all ranks
// of a host use the network together. Finally each host gathers the pieces.
//
// Hosts with different numbers of ranks have no common l. Then the first rank of each host reduces
// the values of its host (one shot), these ranks allreduce everything, and each broadcasts the
// result to its host (one shot).
//
// Costs, for L ranks on each of N hosts: the network of a host carries 2 * (N - 1) / N * elements
// in each direction, whatever L is; the memory within the host carries the rest.
namespace trainyard::collectives::plan {
namespace {

struct Hosts {
  std::vector<std::vector<int>> ranks;  // by host, in the order of their first ranks
  bool alike = true;

  explicit Hosts(std::span<const int> hosts) {
    std::map<int, size_t> index;
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      const auto [entry, is_new] = index.try_emplace(hosts[rank], ranks.size());
      if (is_new) ranks.emplace_back();
      ranks[entry->second].push_back(int(rank));
    }
    for (const auto& local : ranks) alike = alike && local.size() == ranks[0].size();
  }

  // Returns (host, local rank).
  std::pair<size_t, size_t> position_of(int rank) const {
    for (size_t host = 0; host < ranks.size(); ++host) {
      const auto found = std::find(ranks[host].begin(), ranks[host].end(), rank);
      if (found != ranks[host].end()) return {host, size_t(found - ranks[host].begin())};
    }
    CHECK(false, "every rank has a host");
    return {};
  }

  std::vector<int> team_at(size_t local_rank) const {
    std::vector<int> team;
    for (const auto& local : ranks) team.push_back(local[local_rank]);
    return team;
  }
};

Plan plan_for(Operation operation, Algorithm algorithm, size_t rank, size_t ranks, size_t elements,
              size_t chunk_elements) {
  Plan plan;
  plan.operation = operation;
  plan.algorithm = algorithm;
  plan.rank = int(rank);
  plan.ranks = int(ranks);
  plan.elements = elements;
  plan.chunk_elements = chunk_elements;
  return plan;
}

Expression leaves(std::span<const int> ranks) {
  if (ranks.size() == 1) return {ranks[0], {}};
  Expression all;
  for (const int rank : ranks) all.parts.push_back({rank, {}});
  return all;
}

void put_hosts(Expression& expression, const Hosts& hosts) {
  if (expression.parts.empty()) {
    expression = leaves(hosts.ranks[size_t(expression.rank)]);
    return;
  }
  for (Expression& part : expression.parts) put_hosts(part, hosts);
}

}  // namespace

std::vector<Stage> hierarchical(int rank, std::span<const int> hosts, size_t elements,
                                size_t local_chunk_elements, Algorithm between,
                                size_t between_chunk_elements) {
  const Hosts all(hosts);
  const auto [host, local_rank] = all.position_of(rank);
  const std::vector<int>& local = all.ranks[host];
  std::vector<Stage> stages;
  const auto add = [&](Plan plan, std::vector<int> team, size_t begin, std::vector<Range> blocks) {
    stages.push_back({plan, std::move(team), begin, std::move(blocks)});
  };
  if (!all.alike) {
    Plan up = plan_for(Operation::reduce, Algorithm::one_shot, local_rank, local.size(), elements,
                       local_chunk_elements);
    up.finishes = all.ranks.size() == 1;
    add(up, local, 0, {});
    if (local_rank == 0) {
      add(plan_for(Operation::allreduce, between, host, all.ranks.size(), elements,
                   between_chunk_elements),
          all.team_at(0), 0, {});
    }
    add(plan_for(Operation::broadcast, Algorithm::one_shot, local_rank, local.size(), elements,
                 local_chunk_elements),
        local, 0, {});
  } else {
    std::vector<Range> blocks;
    for (size_t l = 0; l < local.size(); ++l)
      blocks.push_back(piece(elements, int(l), int(local.size())));
    const Range own = blocks[local_rank];
    Plan scatter = plan_for(Operation::reduce_scatter, Algorithm::direct, local_rank, local.size(),
                            elements, local_chunk_elements);
    scatter.finishes = all.ranks.size() == 1;
    add(scatter, local, 0, blocks);
    add(plan_for(Operation::allreduce, between, host, all.ranks.size(), own.size(),
                 between_chunk_elements),
        all.team_at(local_rank), own.begin, {});
    add(plan_for(Operation::all_gather, Algorithm::direct, local_rank, local.size(), elements,
                 local_chunk_elements),
        local, 0, blocks);
  }
  for (Stage& stage : stages) stage.plan.blocks = stage.storage;
  return stages;
}

Expression hierarchical_expression(std::span<const int> hosts, size_t elements, Algorithm between,
                                   size_t element) {
  const Hosts all(hosts);
  size_t begin = 0;
  size_t size = elements;
  if (all.alike) {
    const int local = int(all.ranks[0].size());
    int local_rank = 0;
    while (element >= piece(elements, local_rank, local).end) ++local_rank;
    const Range own = piece(elements, local_rank, local);
    begin = own.begin;
    size = own.size();
  }
  Expression sum;
  if (all.ranks.size() > 1) {
    sum = expression(plan_for(Operation::allreduce, between, 0, all.ranks.size(), size, 0),
                     element - begin);
  }
  put_hosts(sum, all);
  return sum;
}

}  // namespace trainyard::collectives::plan
