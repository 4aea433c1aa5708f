// EASY backfill: the first job that waits for machines is promised them for the earliest instant at which it surely fits,
// and others may pass as long as that stays true. (Lifka 1995, "The ANL/IBM SP scheduling system".)
//
// The instant is found once, by walking the ends of what runs in their order. Then a machine has two sorts of room: what
// is free now, for those who are over by the instant; and of that, what is free at the instant besides what was promised,
// for all others. Where the instant is not known, machines that the first job could use have no room of the second sort.
//
// Threads: pure. Private to this room.
#pragma once

#include <optional>
#include <vector>

#include "schedule/allocations.hpp"
#include "schedule/room.hpp"

namespace trainyard::schedule {

struct Reservation {
  std::optional<Instant> at;
  Layout layout;             // on which machines then; empty when the instant is not known
  std::vector<Share> spare;  // by machine: what is free then, besides
};

// Requires: empty machines hold the gang, `now` does not.
Reservation reserve_machines(const Gang& gang, const std::vector<Machine>& machines, const Places& places,
                             const Room& now, Allocations& allocations);

// Ways that are looked at to lay a gang of unlike hosts, at one instant after another. The promise is of the first that
// was found: it may be later than the earliest, and is as sure.
inline constexpr size_t kInstantsTriedMax = 16;

}  // namespace trainyard::schedule
