// Projects the time of an operation on a cluster that is not available, by replaying the steps of every rank against modelled
// links, memory and processors.
//
// The steps are those that run.cpp executes, so the projection models the real operation. A discrete-event model: the
// rank that is furthest behind takes its next step; a send occupies the outgoing link of its host, one after
// the other where several ranks share it, and the incoming link of the receiver, in parts interleaved with those of others; a
// reduction waits for its operands and then occupies a processor of its host. Not modelled: loss, congestion between switches, other users, what TCP's
// control of congestion makes of them. step.hpp adds what training does around it.
//
// Threads: pure functions. Errors: none; requirements are checked.
// Units: seconds, bytes.
#pragma once

#include <span>
#include <vector>

#include "collectives/select.hpp"

namespace trainyard::collectives::projection {

struct Cluster {
  std::vector<int> hosts;  // by rank: any number that the ranks of one host share
  // latency: of a small message. seconds_per_byte: of a copy by the rank itself (local); of the outgoing or incoming link of a
  // host, independently (between).
  LinkCosts local{0.5e-6, 1 / 16e9};
  LinkCosts between{15e-6, 1 / 1.25e9};
  // The burst of a shaped link after it was idle, in each direction; 0: none.
  double burst_bytes = 0;
  double message_seconds = 1e-6;  // processor time of the sender for each message over the network
  double fold_seconds_per_byte = 1 / 20e9;
  // The number of copies and reductions that a host does at the same time; 0: one per rank.
  int processors = 0;

  // Returns the costs for the table.
  Costs costs() const { return {local, between, fold_seconds_per_byte}; }
};

// Returns the hosts of `ranks` ranks with `local` ranks each; the last host may have fewer.
std::vector<int> hosts_of(int ranks, int local);

// Returns the time until the last rank is done, when all begin at once; with bursts, that of the third operation in
// sequence. Requires: choice is of an allreduce.
double allreduce_seconds(const Choice& choice, size_t bytes, const Cluster& cluster);

}  // namespace trainyard::collectives::projection
