// An Accumulator computes one function of `stats` over a stream of values.
//
// Memory: percentiles and distinct counts are exact, and store 8 bytes for each value. The caller
// sums the results of add(), and ends a query that needs too much memory.
//
// Threads: confined to one thread. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "insights/query.hpp"
#include "insights/value.hpp"

namespace trainyard::insights {

class Accumulator {
 public:
  // Adds the value of one event. `at` is the event's time in milliseconds. Returns the number of
  // bytes of memory that this added.
  size_t add(const Aggregate& aggregate, const Value& value, double at);
  Value result(const Aggregate& aggregate);

 private:
  void add_number(AggregateKind kind, double number);
  void keep(bool better, const Value& value, double at);

  uint64_t count_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford's algorithm, which is accurate for large numbers
  double sum_ = 0, compensation_ = 0;
  double kept_at_ = 0;
  Value kept_;  // min, max, earliest, latest, sortsFirst, sortsLast
  std::vector<double> numbers_;
  std::unordered_set<uint64_t> distinct_;  // hashes of texts
};

}  // namespace trainyard::insights
