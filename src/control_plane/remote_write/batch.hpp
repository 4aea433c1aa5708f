// Builds requests from metric points, in the order that receivers accept, and maps the status of a
// response to the next action.
//
// A receiver rejects a whole request for one sample that is older than the last one of its series.
// So the samples of a series are sorted, the last of several at one instant counts, and samples
// that are older than those sent before are left out and counted.
//
// Threads: a BatchMaker is confined to one; the functions are pure. Errors: none.
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
  double factor = 1;     // from the points' unit to the series'
  bool counter = false;  // points are amounts, and the series is their sum
};
using NameSeries = std::function<NamedSeries(const observe::MetricKey&)>;

struct Batch {
  std::vector<TimeSeries> series;
  size_t samples = 0;
  uint64_t left_out = 0;  // older than those sent before
};

class BatchMaker {
 public:
  explicit BatchMaker(NameSeries name_series) : name_series_(std::move(name_series)) {}

  // Each point is passed once: a repeated request is the same Batch.
  Batch make(const std::vector<observe::MetricRecord>& records);

 private:
  struct Known {
    int64_t last = INT64_MIN;  // milliseconds
    double total = 0;
  };
  const NameSeries name_series_;
  std::unordered_map<std::string, Known> known_;  // by the labels' text
};

enum class Outcome {
  accepted,
  retry,     // later, with the same points
  rejected,  // some of its points are invalid: its parts are sent separately
};
// `status`: the HTTP status; 0: no response.
Outcome outcome_of(int status);

// The wait before the next try, after `failures` in a row.
Duration retry_delay(uint32_t failures);

// Splits series, or the samples of a single one, into two parts. Requires: more than one sample.
std::pair<std::vector<TimeSeries>, std::vector<TimeSeries>> split_series(
    std::vector<TimeSeries> series);

}  // namespace trainyard::remote_write
