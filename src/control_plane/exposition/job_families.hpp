// Describes jobs and the latest values of their metrics as families.
//
// Each series of a job has the labels region, job_name, user and queue. (The label `job` is
// reserved: Prometheus stores the name of a scrape config there.) The metrics that jobs publish are
// one family, trainyard_job_metric, since jobs choose their names freely; the label `metric` has
// the name. The metrics of hosts, which agents measure, are converted to base units:
//
//   CPUUtilization      0 to 100 for each core   trainyard_job_host_cpu_used_cores
//   MemoryUtilization   0 to 100                 trainyard_job_host_memory_utilization_ratio
//   GPUUtilization      0 to 100 for each GPU    trainyard_job_host_gpu_used_gpus
//   InputBytesFetched   bytes since the last     trainyard_job_host_input_fetched_bytes_total
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "domain/job.hpp"
#include "exposition/family.hpp"
#include "exposition/latest_values.hpp"

namespace trainyard::exposition {

struct ExposedJob {
  std::shared_ptr<const domain::Job> job;
  JobValues values;
};

// Returns the labels that all series of a job have.
SharedLabels labels_of(const domain::Job& job);

// Adds the families of jobs. A family without samples is left out. Series beyond `series_max` are
// left out and counted in trainyard_job_series_left_out. Requires: no job is listed twice.
void add_job_families(const std::vector<ExposedJob>& jobs, size_t series_max, Families& families);

}  // namespace trainyard::exposition
