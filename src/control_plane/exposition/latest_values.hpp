// LatestValues keeps the latest value of each metric of jobs in memory, for scrapes.
//
// Only points of jobs that were added are taken: names of jobs that do not exist, and points that
// arrive after a job's end, take no memory.
//
// Memory is bounded: a job has at most series_of_job_max series here, and all jobs together
// series_max. Points of further series are left out and counted. Beyond series_max, values of that
// job are dropped first whose last point arrived the longest time ago; the times of points do not
// count, since jobs choose them.
//
// Threads: callable from anywhere. Errors: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "domain/job.hpp"
#include "observe/metrics.hpp"

namespace trainyard::exposition {

struct LatestLimits {
  size_t series_of_job_max = 1'000;
  size_t series_max = 100'000;  // of some 200 bytes each
};

// The latest value of one metric.
struct LatestValue {
  std::string metric;
  std::string host;  // "algo-1"; "": of the job as a whole
  double value = 0;
  double total = 0;  // the sum of all points since this server started
  Instant at;
};

struct JobValues {
  std::vector<LatestValue> values;  // by metric and host
  uint64_t points_left_out = 0;
  Instant last_point;
};

// The job and the host of a metric that a training job's agent, or the job itself, has sent.
struct MetricOwner {
  domain::JobKey job;
  std::string host;
};
// Nothing: the metric is not a job's.
std::optional<MetricOwner> owner_of(const observe::MetricKey& key);

class LatestValues {
 public:
  explicit LatestValues(LatestLimits limits) : limits_(limits) {}

  // Takes points of the job from now on.
  void add(const domain::JobKey& job);
  // Takes points of one metric, or of several, that are durable.
  void take(const observe::MetricKey& key, std::span<const observe::Sample> samples);
  void take(const std::vector<observe::MetricRecord>& records);
  // Reads the last point of each metric of jobs for which `wanted` is true, as after a restart of
  // the server. It is not added to totals. Values that were taken meanwhile stay. May be repeated
  // after an error. Errors: those of the metrics.
  Result<void> restore(observe::Metrics& metrics, const std::string& region,
                       const std::function<bool(const domain::JobKey&)>& wanted);
  // Takes no more points of the job.
  void forget(const domain::JobKey& job);

  // Empty, if there is none.
  JobValues values_of(const domain::JobKey& job) const;
  uint64_t points_left_out() const;

 private:
  using SeriesName = std::pair<std::string, std::string>;  // metric, host
  struct Value {
    double value = 0, total = 0;
    Instant at;
  };
  struct Job {
    std::map<SeriesName, Value> values;
    uint64_t points_left_out = 0;
    Instant last_point;
    uint64_t arrival = 0;  // key of its last point in by_arrival_; 0: it has no values
  };
  using Jobs = std::map<domain::JobKey, Job>;
  // Takes one point. `total`: what it adds to the metric's total.
  void take(Jobs::value_type& job, SeriesName name, const observe::Sample& sample, double total)
      REQUIRES(mutex_);
  // Removes the values of the job, which stays.
  void clear(Jobs::value_type& job) REQUIRES(mutex_);
  // Makes space for one series of `job`. False: there is none.
  bool make_space(const Jobs::value_type& job) REQUIRES(mutex_);
  // Makes `job` the last one of by_arrival_.
  void note_arrival(Jobs::value_type& job) REQUIRES(mutex_);

  const LatestLimits limits_;
  mutable Mutex mutex_;
  Jobs jobs_ GUARDED_BY(mutex_);
  // The jobs that have values.
  std::map<uint64_t, Jobs::value_type*> by_arrival_ GUARDED_BY(mutex_);
  uint64_t arrivals_ GUARDED_BY(mutex_) = 0;
  size_t series_ GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::exposition
