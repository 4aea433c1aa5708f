// Projects the time of an operation on a cluster that is not available, by replaying the steps of
// every rank against modelled links, memory and processors.
//
// The steps are those that run.cpp executes, so the projection models the real operation. The model
// is a discrete-event simulation. The rank that is furthest behind executes its next step. A send
// occupies the outgoing link of its host; sends of ranks that share a link queue for it. It then
// occupies the incoming link of the receiver, in parts that interleave with messages from other
// hosts. A reduction waits for its operands and then occupies a processor of its host. The model
// leaves out loss, congestion between switches, other users, and TCP's congestion control. step.hpp
// adds the training step around the operation.
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
  // latency_seconds is the time of a small message. seconds_per_byte is the time of a copy by the
  // rank itself (local), or of each direction of a host's link (between).
  LinkCosts local{0.5e-6, 1 / 16e9};
  LinkCosts between{15e-6, 1 / 1.25e9};
  // The bytes that an idle shaped link passes at once, in each direction, before its rate applies;
  // 0: none.
  double burst_bytes = 0;
  double message_seconds = 1e-6;  // processor time of the sender for each message over the network
  double reduce_seconds_per_byte = 1 / 20e9;
  // The number of copies and reductions that a host executes at the same time; 0: one per rank.
  int processors = 0;

  // Returns the costs from which a table chooses plans.
  Costs costs() const { return {local, between, reduce_seconds_per_byte}; }
};

// Returns the hosts of `ranks` ranks with `local` ranks each; the last host may have fewer.
std::vector<int> hosts_of(int ranks, int local);

// Returns the time until the last rank is done, when all ranks begin at the same time. With bursts,
// this is the time of the third operation in sequence, after the first two have used them up.
// Requires: choice is of an allreduce.
double allreduce_seconds(const Choice& choice, size_t bytes, const Cluster& cluster);

}  // namespace trainyard::collectives::projection
