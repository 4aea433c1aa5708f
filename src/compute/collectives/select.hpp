// Which plan an operation gets: one table, with the reason for each row.
//
// The rows come from a model of what plans cost on the links that the group has (measured when the ranks met, or
// the defaults below), or from the user's own words. All ranks hold the same table: it is part of what decides
// the order of additions.
//
// Threads: plain values and pure functions. Errors: invalid, saying which words of the user's are wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collectives/plan/plan.hpp"

namespace trainyard::collectives {

struct LinkCosts {
  double latency_seconds = 0;   // of a small message
  double seconds_per_byte = 0;  // of a large one
};

struct Costs {
  LinkCosts local{0.5e-6, 1 / 16e9};    // shared memory: one copy
  LinkCosts between{15e-6, 1 / 2.5e9};  // a network, or TCP over loopback
  double fold_seconds_per_byte = 1 / 20e9;
};

struct Choice {
  plan::Operation operation = plan::Operation::allreduce;
  size_t bytes_end = 0;  // for operations of fewer bytes, down to the row before
  plan::Algorithm algorithm = plan::Algorithm::ring;
  size_t chunk_bytes = 0;
  // hierarchical: the plan between the hosts.
  plan::Algorithm between = plan::Algorithm::ring;
  size_t between_chunk_bytes = 0;
  std::string reason;
};

// Of which group somebody has asked for plans.
enum class Asked : uint8_t { of_this_group, of_the_whole };

class Table {
 public:
  // hosts[r] is the host of rank r.
  static Table made_from(const Costs& costs, std::span<const int> hosts);

  // Requires: the operation has a plan.
  const Choice& choose(plan::Operation operation, size_t bytes) const;

  // The user's own rows, which replace the table's for the sizes that they name:
  //   "allreduce=one_shot:0-64K,ring:64K-;broadcast=tree:0-"
  // Sizes are bytes, with K, M or G for powers of 1024; the end is not part of the row. A plan may say how large
  // its chunks are: "allreduce=direct/1M:4M-". Rows that were asked of the whole group are left out where this part of
  // it, being on one host, has no such plan.
  Result<void> override_with(std::string_view text, Asked asked = Asked::of_this_group);

  // One row a line, for people: operation, sizes, plan, reason.
  std::string text() const;
  const std::vector<Choice>& rows() const { return rows_; }

 private:
  void put_row(Choice row, size_t begin);
  std::vector<Choice> rows_;  // by operation, then by bytes_end; without gaps
  bool has_many_hosts_ = false;
  int ranks_ = 1;
};

// How long an operation of so many bytes takes by the model. `shared`: all ranks share memory.
double modelled_seconds(plan::Operation operation, plan::Algorithm algorithm, size_t bytes,
                        std::span<const int> hosts, const Costs& costs);

}  // namespace trainyard::collectives
