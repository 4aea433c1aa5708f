// Describes the jobs and machines of a server as families: jobs by state and queue, hosts, and the
// used and free capacity by kind of machine.
//
// The labels contain no names of jobs and users, and the number of series does not grow with jobs.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "domain/job.hpp"
#include "exposition/family.hpp"

namespace trainyard::exposition {

struct ClusterMachine {
  std::string name;
  std::string kind;  // the kind of a machine that was added on demand; "": a permanent machine
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
};

using LiveJobs = std::vector<std::shared_ptr<const domain::Job>>;

void add_cluster_families(const LiveJobs& jobs, const std::vector<ClusterMachine>& machines,
                          Families& families);

}  // namespace trainyard::exposition
