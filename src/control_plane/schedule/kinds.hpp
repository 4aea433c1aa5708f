// A hundred thousand waiting jobs ask for a handful of things. Those that ask for the same and stand in the same place
// are one kind: what was found out for one of them is true of all.
//
// Threads: pure. Lifetime: refers to nothing. Private to this room.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/plan.hpp"

namespace trainyard::schedule {

struct Kinds {
  struct Kind {
    uint32_t like = 0;   // the index of its first job in `waiting`
    uint32_t shape = 0;  // of what hosts it asks for
  };
  std::vector<uint32_t> kind_of;  // by index in `waiting`
  std::vector<Kind> kinds;
  std::vector<uint32_t> shapes;  // by shape: the index of its first job in `waiting`
};

// Jobs of one kind have equal asks, choices, demands, line and, of lines with quota shares, share. How long they last,
// how urgent they are and which pools they may take over may differ.
Kinds kinds_of(const std::vector<Waiting>& waiting, const std::vector<Line>& lines);

}  // namespace trainyard::schedule
