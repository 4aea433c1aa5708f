// How long an operation takes on a cluster that is not there: the plan's own steps, of every rank, against links,
// memory and processors that are numbers.
//
// The steps are those that run.cpp carries out, so what is projected is what would run. A discrete-event model: the
// rank that is furthest behind takes its next step; a send occupies its host's way out, one after the other where
// several ranks share it, and the receiver's way in, in parts that take turns with others'; a fold waits for its operands
// and then occupies one of its host's processors. Not in it: loss, congestion between switches, other users, what TCP's
// control of congestion makes of them. step.hpp adds what training does around it.
//
// Threads: pure functions. Errors: none; what is Required is checked.
// Units: seconds, bytes.
#pragma once

#include <span>
#include <vector>

#include "collectives/select.hpp"

namespace trainyard::collectives::projection {

struct Cluster {
  std::vector<int> hosts;  // by rank: any number that the ranks of one host share
  // latency: until a small message is there. seconds_per_byte: of a copy by the rank itself (local), of a host's
  // way out or in, each by itself (between).
  LinkCosts local{0.5e-6, 1 / 16e9};
  LinkCosts between{15e-6, 1 / 1.25e9};
  // What a link that is shaped lets through at once after it was idle, each way; 0: nothing.
  double burst_bytes = 0;
  double message_seconds = 1e-6;  // of the sender's own time, for each message over the network
  double fold_seconds_per_byte = 1 / 20e9;
  // How many copies and folds a host does at the same time; 0: as many as it has ranks.
  int processors = 0;

  // As the table would know it.
  Costs costs() const { return {local, between, fold_seconds_per_byte}; }
};

// `ranks` on hosts of `local` each; the last host may have fewer.
std::vector<int> hosts_of(int ranks, int local);

// Until the last rank is through, when all begin at once; where links let bursts through, of the third operation in
// a row. Requires: choice is of an allreduce.
double allreduce_seconds(const Choice& choice, size_t bytes, const Cluster& cluster);

}  // namespace trainyard::collectives::projection
