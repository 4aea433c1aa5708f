// ClusterRecord is what the controller keeps about the cluster: its machines, and what each of them
// has. All commands start from it.
//
// Threads: plain values. Errors: invalid and corrupt (reading).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cluster_setup/machine_facts.hpp"

namespace trainyard::cluster_setup {

// Every command connects to every machine, and writes the list of all to each.
inline constexpr size_t kMachinesMax = 256;

struct MachineRecord {
  std::string destination;  // for ssh; "" = the controller, which the command line names
  std::string name;         // the host's, and Slurm's node has the same
  std::string address;      // IPv4, at which the others reach it
  int64_t cpus = 0;
  int64_t memory_mib = 0;  // for jobs
  std::vector<Gpu> gpus;
  bool runs_jobs = true;
  bool operator==(const MachineRecord&) const = default;
};

struct ClusterRecord {
  int64_t version = 1;
  std::string name;
  std::string system;                   // "debian 12", of all machines
  std::vector<MachineRecord> machines;  // the controller first
  bool operator==(const ClusterRecord&) const = default;
};

std::string to_text(const ClusterRecord& record);
Result<ClusterRecord> read_cluster_record(std::string_view text);

}  // namespace trainyard::cluster_setup
