// LatestValues stores the latest value of each metric of jobs in memory, for scrapes.
//
// Only points of jobs that were added are recorded. So points of jobs that do not exist, or that
// arrive after a job's end, use no memory.
//
// Memory is bounded: each job has at most series_of_job_max series, and all jobs together have
// series_max. Points of further series are left out and counted. When series_max is reached, the
// values of the job whose last point arrived first are dropped. The times in points do not count
// for this, since jobs choose them.
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
  size_t series_max = 100'000;  // some 200 bytes each
};

// The latest value of one metric.
struct LatestValue {
  std::string metric;
  std::string host;  // "algo-1"; "": a metric of the job as a whole
  double value = 0;
  double total = 0;  // the sum of all points since this server started
  Instant at;
};

struct JobValues {
  std::vector<LatestValue> values;  // by metric and host
  uint64_t points_left_out = 0;
  Instant last_point;
};

// The job and the host of a metric that a training job or its agent has sent.
struct MetricOwner {
  domain::JobKey job;
  std::string host;
};
// Returns nullopt for a metric that does not belong to a job.
std::optional<MetricOwner> owner_of(const observe::MetricKey& key);

class LatestValues {
 public:
  explicit LatestValues(LatestLimits limits) : limits_(limits) {}

  // Records points of the job from now on.
  void add(const domain::JobKey& job);
  // Record points of one metric or of several. Requires: the points are durable.
  void record(const observe::MetricKey& key, std::span<const observe::Sample> samples);
  void record(const std::vector<observe::MetricRecord>& records);
  // Reads the last point of each metric of the jobs for which `wanted` returns true, as after a
  // restart of the server. These points are not added to totals, and do not replace values that
  // were recorded meanwhile. May be repeated after an error. Errors: those of Metrics.
  Result<void> restore(observe::Metrics& metrics, const std::string& region,
                       const std::function<bool(const domain::JobKey&)>& wanted);
  // Removes the values of the job, and records no further points of it.
  void forget(const domain::JobKey& job);

  // Returns an empty value for an unknown job.
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
    uint64_t arrival = 0;  // key of its last point in by_arrival_; 0: the job has no values
  };
  using Jobs = std::map<domain::JobKey, Job>;
  // Records one point, and adds `total` to the metric's total.
  void record(Jobs::value_type& job, SeriesName name, const observe::Sample& sample, double total)
      REQUIRES(mutex_);
  // Removes the values of the job, but not the job.
  void clear(Jobs::value_type& job) REQUIRES(mutex_);
  // Makes space for one series of `job` by removing values of other jobs. Returns false if no other
  // job has values.
  bool make_space(const Jobs::value_type& job) REQUIRES(mutex_);
  // Moves `job` to the end of by_arrival_.
  void note_arrival(Jobs::value_type& job) REQUIRES(mutex_);

  const LatestLimits limits_;
  mutable Mutex mutex_;
  Jobs jobs_ GUARDED_BY(mutex_);
  // The jobs that have values, ordered by the arrival of their last point.
  std::map<uint64_t, Jobs::value_type*> by_arrival_ GUARDED_BY(mutex_);
  uint64_t arrivals_ GUARDED_BY(mutex_) = 0;
  size_t series_ GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::exposition
