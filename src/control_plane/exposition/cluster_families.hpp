// Describes the jobs and machines of a server as families: jobs by state and queue, hosts, and what
// is used and free by kind of machine.
//
// These series tell no names of jobs and users, and their number does not grow with jobs.
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
  std::string kind;  // of machines that are added on demand; "": it is always there
  double cpus = 0;
  int64_t memory_bytes = 0;
  int64_t gpus = 0;
};

using LiveJobs = std::vector<std::shared_ptr<const domain::Job>>;

void add_cluster_families(const LiveJobs& jobs, const std::vector<ClusterMachine>& machines,
                          Families& families);

}  // namespace trainyard::exposition
