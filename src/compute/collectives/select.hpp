// Chooses the plan of an operation: one table, with the reason for each row.
//
// The rows come from a cost model of the plans on the links of the group (measured when the ranks
// joined, or the defaults below), or from the user. All ranks hold the same table, since it
// determines the order of additions.
//
// Threads: plain values and pure functions. Errors: invalid, naming the wrong part of the user's
// rows.
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
  double latency_seconds = 0;   // time of a small message
  double seconds_per_byte = 0;  // for large messages
};

struct Costs {
  LinkCosts local{0.5e-6, 1 / 16e9};    // shared memory: one copy
  LinkCosts between{15e-6, 1 / 2.5e9};  // a network, or TCP over loopback
  double reduce_seconds_per_byte = 1 / 20e9;
  // The number of ranks of one host that share a core. A message between them waits until the other
  // ranks on the core have run.
  int ranks_per_core = 1;
};

struct Choice {
  plan::Operation operation = plan::Operation::allreduce;
  // the row applies to sizes below this, from the bytes_end of the row before
  size_t bytes_end = 0;
  plan::Algorithm algorithm = plan::Algorithm::ring;
  size_t chunk_bytes = 0;
  // hierarchical: the plan between the hosts.
  plan::Algorithm between = plan::Algorithm::ring;
  size_t between_chunk_bytes = 0;
  std::string reason;
};

// The group for which the user wrote the rows: this group, or the group from which it was split.
enum class PlanScope : uint8_t { of_this_group, of_the_whole };

class Table {
 public:
  // Makes a table by the cost model. hosts[r] is the host of rank r.
  static Table made_from(const Costs& costs, std::span<const int> hosts);

  // Returns the row for an operation of this size. Requires: the operation has a plan.
  const Choice& choose(plan::Operation operation, size_t bytes) const;

  // Replaces rows of the table by rows of the user, for the sizes that they name:
  //   "allreduce=one_shot:0-64K,ring:64K-;broadcast=tree:0-"
  // Sizes are bytes, with K, M or G for powers of 1024; the end is not part of the row. A plan may
  // have a chunk size: "allreduce=direct/1M:4M-". Rows with PlanScope::of_the_whole are ignored if
  // this group is on one host and does not have the plan.
  Result<void> override_with(std::string_view text, PlanScope scope = PlanScope::of_this_group);

  // Returns one line per row, for logs: operation, sizes, plan, reason.
  std::string text() const;
  const std::vector<Choice>& rows() const { return rows_; }

 private:
  void put_row(Choice row, size_t begin);
  std::vector<Choice> rows_;  // by operation, then by bytes_end; without gaps
  bool has_many_hosts_ = false;
  int ranks_ = 1;
};

// Returns the time of an operation by the cost model.
double modelled_seconds(plan::Operation operation, plan::Algorithm algorithm, size_t bytes,
                        std::span<const int> hosts, const Costs& costs);

}  // namespace trainyard::collectives
