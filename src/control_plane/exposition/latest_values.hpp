// LatestValues keeps the latest value of each metric of jobs in memory, for scrapes.
//
// Memory is bounded: a job has at most series_of_job_max series here, and all jobs together
// series_max. Points of further series are left out and counted. Beyond series_max the jobs go
// first whose last point is the oldest.
//
// Threads: callable from anywhere. Errors: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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

  // Takes points that are durable.
  void take(const std::vector<observe::MetricRecord>& records);
  // Reads the last point of each metric of jobs for which `wanted` is true, as after a restart of
  // the server. Points that were taken meanwhile stay. Errors: those of the metrics.
  Result<void> restore(observe::Metrics& metrics, const std::string& region,
                       const std::function<bool(const domain::JobKey&)>& wanted);
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
  };
  void take(const MetricOwner& owner, const std::string& metric, const observe::Sample& sample)
      REQUIRES(mutex_);
  void erase(std::map<domain::JobKey, Job>::iterator job) REQUIRES(mutex_);
  // Makes space for one series of `job`. False: there is none.
  bool admit(const domain::JobKey& job) REQUIRES(mutex_);

  const LatestLimits limits_;
  mutable Mutex mutex_;
  std::map<domain::JobKey, Job> jobs_ GUARDED_BY(mutex_);
  size_t series_ GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::exposition
