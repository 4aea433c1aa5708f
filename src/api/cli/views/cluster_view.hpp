// Formats the pages of `trainyard cluster`: what a command will do on each machine, and the nodes
// with their states.
//
// Texts of machines are untrusted: control characters do not reach the terminal.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/layout.hpp"

namespace trainyard::cli {

struct MachinePlanView {
  std::string name, about;  // "ws2", "10.0.0.2, 16 CPUs, 62 GiB of memory, 2 GPUs"
  std::string problem;      // why it is left alone; "" = none
  std::string forgotten;    // why it leaves although nothing is undone there; "" = it answers
  std::vector<std::pair<std::string, std::string>> steps;  // text, reason
};
// Formats the machines that have steps or problems.
std::string cluster_plan_page(const OutputStyle& style,
                              const std::vector<MachinePlanView>& machines);

// Formats "16 CPUs, 62 GiB of memory, 2 GPUs (nvidia_a100)". `gpus` "" = none.
std::string machine_size_text(int64_t cpus, int64_t memory_mib, size_t gpu_count,
                              const std::string& gpu_type);

struct ClusterNodeView {
  std::string name, address;
  std::string state;  // Slurm's; "" = Slurm does not know the node
  int64_t cpus = 0, memory_mib = 0, gpus = 0;
  std::string version, reason;
  bool is_controller = false, runs_jobs = true;
};
std::string cluster_status_page(const OutputStyle& style, const std::string& cluster,
                                const std::vector<ClusterNodeView>& nodes);

}  // namespace trainyard::cli
