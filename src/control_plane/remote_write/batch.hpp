// Builds requests from metric points, in the order that receivers accept, and maps the status of a
// response to the next action.
//
// A receiver rejects a whole request if one of its samples is older than the last sample of the
// series. So the samples of a series are sorted; of several samples at one instant, the last is
// sent; and samples that are older than those sent before are left out and counted.
//
// Threads: a BatchMaker is confined to one thread; the functions are pure. Errors: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"
#include "observe/metrics.hpp"
#include "remote_write/write_request.hpp"

namespace trainyard::remote_write {

using SeriesLabels = std::vector<std::pair<std::string, std::string>>;

// The series of a metric's points.
struct NamedSeries {
  SeriesLabels labels;   // with __name__
  double factor = 1;     // from the unit of the points to the unit of the series
  bool counter = false;  // each point is an amount, and the series is their sum
};
using NameSeries = std::function<NamedSeries(const observe::MetricKey&)>;

struct Batch {
  std::vector<TimeSeries> series;
  size_t samples = 0;
  uint64_t left_out = 0;  // samples that are older than those sent before
};

class BatchMaker {
 public:
  explicit BatchMaker(NameSeries name_series) : name_series_(std::move(name_series)) {}

  // Requires: each point is passed once. To repeat a request, send the same Batch again.
  Batch make(const std::vector<observe::MetricRecord>& records);

 private:
  struct Known {
    int64_t last = INT64_MIN;  // the time of the last sample, in milliseconds
    double total = 0;
  };
  const NameSeries name_series_;
  std::unordered_map<std::string, Known> known_;  // by the labels' text
};

enum class Outcome {
  accepted,
  retry,     // send the same points later
  rejected,  // some points are invalid: send the halves separately
};
// `status`: the HTTP status, or 0 if no response arrived.
Outcome outcome_of(int status);

// Returns the wait before the next attempt, after `failures` consecutive failures.
Duration retry_delay(uint32_t failures);

// Splits series, or the samples of a single series, in halves. Requires: more than one sample.
std::pair<std::vector<TimeSeries>, std::vector<TimeSeries>> split_series(
    std::vector<TimeSeries> series);

}  // namespace trainyard::remote_write
