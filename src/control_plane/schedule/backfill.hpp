// Computes the reservation of EASY backfill: the first job that waits for machines gets the
// earliest instant at which it is certain to fit, and later jobs may start before it as long as
// they do not delay it. (Lifka 1995, "The ANL/IBM SP scheduling system".)
//
// The instant is found once, by walking the ends of running jobs in their order. From then on a
// machine has two kinds of free capacity: what is free now, for jobs that end by the instant; and
// the part of it that is still free at the instant next to the reservation, for all other jobs. If
// the instant is unknown, machines that the first job could use have no capacity of the second
// kind.
//
// Threads: pure. Private to this module.
#pragma once

#include <optional>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/free_capacity.hpp"

namespace trainyard::schedule {

struct Reservation {
  std::optional<Instant> at;
  Layout layout;             // the machines that it will use; empty when the instant is unknown
  std::vector<Share> spare;  // by machine: what is free then in addition to the reservation
};

// Requires: empty machines hold the gang, `now` does not.
Reservation reserve_machines(const Gang& gang, const std::vector<Machine>& machines,
                             const Topology& topology, const FreeCapacity& now,
                             Allocations& allocations);

// Limits the instants at which a layout of a gang of unlike hosts is searched. The reservation uses
// the first layout that is found: it may be later than the earliest possible, but is as certain.
inline constexpr size_t kInstantsTriedMax = 16;

}  // namespace trainyard::schedule
