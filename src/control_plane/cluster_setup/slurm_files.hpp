// Formats Slurm's files for a cluster: slurm.conf, cgroup.conf and gres.conf. They are the same on
// all machines.
//
// Threads: pure functions. Equal records give equal bytes, so a changed file is a changed cluster.
#pragma once

#include <string>

#include "cluster_setup/cluster_record.hpp"

namespace trainyard::cluster_setup {

inline constexpr const char* kPartition = "trainyard";

std::string slurm_conf(const ClusterRecord& record);
std::string cgroup_conf();
std::string gres_conf(const ClusterRecord& record);

// Returns the part of a machine's memory that jobs get. The rest is for the system, and for kernels
// that see less of it: a node that reports less than slurm.conf says is drained.
int64_t memory_for_jobs(int64_t memory_mib);
// Returns true if slurm.conf may still say `recorded` for a machine with `memory_mib`.
bool memory_still_fits(int64_t recorded, int64_t memory_mib);

}  // namespace trainyard::cluster_setup
