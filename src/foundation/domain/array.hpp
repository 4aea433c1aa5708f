// Defines arrays: an array is one job that is never placed, and has 2 to 10,000 ordinary jobs, its
// children. An array with number P reserves the numbers P+1 .. P+size. Child i has number P+1+i,
// and the name in its key is "<array>:<i>". The dependencies of a child can therefore be computed,
// and a child that has not been made yet can be shown: it follows from its array alone.
//
// Children are made in the order of their index, a few at a time (the first Job::children_made
// exist), since an array of ten thousand would otherwise need ten thousand records before the first
// child runs. A child that is cancelled before it is made is made in its final state, in its order.
//
//   array   waiting --first child is made--> active
//           active  --all children have ended--> completed, or failed if a child failed
//           waiting --cancel--> stopped
//           active  --cancel--> stopping (makes no more children) --> stopped
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
// Returns the last number that the job reserves: its own number or, for an array, the number of its
// last child.
inline JobNumber last_number_of(const Job& job) {
  return job.number + (job.is_array() ? job.spec.array.size : 0);
}

// Parses "4b7d:12" to {"4b7d", 12}. Returns nullopt if `name` has another form.
struct ChildName {
  std::string array;
  uint32_t index = 0;
};
std::optional<ChildName> parse_child_name(std::string_view name);

// Returns the child as it is made, or as it is shown before it is made: waiting or, if the array
// makes no more children, stopped for the array's reason. Requires: array.is_array(); index is
// below its size.
Job child_of(const Job& array, uint32_t index);

// The numbers of an array's children at each stage.
struct ChildCounts {
  std::array<uint32_t, kStages> of{};

  uint32_t in(Stage stage) const { return of[size_t(stage)]; }
  uint32_t all() const;
};

}  // namespace trainyard::domain
