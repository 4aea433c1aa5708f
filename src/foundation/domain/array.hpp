// Defines arrays: one job that is never placed (the array), and 2 to 10,000 jobs like all others (its children). An
// array of number P has reserved the numbers P+1 .. P+size; child i is number P+1+i and its key's name is "<array>:<i>".
// So whom a child awaits is arithmetic, and a child that was not made yet can be shown: it follows from its array alone.
//
// Children are made in the order of their index, few at a time (the first Job::children_made of them), since an array of
// ten thousand would be ten thousand records before the first one runs. One that is cancelled before is created at its
// index's time, in its final state.
//
//   array   waiting --first child is made--> active --all are over--> completed | failed (one of them failed)
//           waiting --withdraw--> stopped    active --withdraw--> stopping (makes no more) --> stopped
//
// Threads: pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "domain/job.hpp"
#include "domain/stage.hpp"

namespace trainyard::domain {

inline JobNumber child_number(JobNumber array, uint32_t index) { return array + 1 + index; }
// Requires: child.parent != 0.
inline uint32_t array_index(const Job& child) { return uint32_t(child.number - child.parent - 1); }
// The last number that is reserved with the job's own: its own, but for an array.
inline JobNumber last_number_of(const Job& job) {
  return job.number + (job.is_array() ? job.spec.array.size : 0);
}

// "4b7d:12" -> {"4b7d", 12}. Nothing, when `name` is not of that form.
struct ChildName {
  std::string array;
  uint32_t index = 0;
};
std::optional<ChildName> parse_child_name(std::string_view name);

// The child as it is made, or as it is shown until then: waiting, and of an array that makes no more, stopped for the
// array's own reason.
// Requires: array.is_array(), index is below its size.
Job child_of(const Job& array, uint32_t index);

// How many of an array's children are at each stage.
struct ChildCounts {
  std::array<uint32_t, kStages> of{};

  uint32_t in(Stage stage) const { return of[size_t(stage)]; }
  uint32_t all() const;
};

}  // namespace trainyard::domain
