#include "cluster_setup/slurm_files.hpp"

#include <algorithm>
#include <map>

#include "cluster_setup/scripts.hpp"

namespace trainyard::cluster_setup {
namespace {

constexpr const char* kHeader =
    "# Written by `trainyard cluster`, which replaces this file on all machines when the cluster\n"
    "# changes.\n";

// For a few machines that one team uses. Numbers are in seconds.
constexpr const char* kSettings = R"(
AuthType=auth/munge
CredType=cred/munge
SlurmUser=slurm
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldPort=6817
SlurmdPort=6818

# Jobs are contained in cgroups: they keep to their processors, memory and GPUs, and leave no
# process behind.
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
# The limits (ulimit) of jobs are those of the node, not those of the shell that submits them.
PropagateResourceLimits=NONE

# Processors, memory and GPUs are allocated one by one, as Trainyard counts them.
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
SchedulerType=sched/backfill
# The queue of a small cluster is cheap to scan, so jobs start at once.
SchedulerParameters=batch_sched_delay=0,sched_interval=5,bf_interval=5

AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none

# A workstation that was switched off and on again gets jobs without further ado.
ReturnToService=2
SlurmdTimeout=60
)";

// Returns "gpu:nvidia_a100:2,gpu:nvidia_t4:1", or "gpu:3" if a type is unknown.
std::string gres_of(const std::vector<Gpu>& gpus) {
  if (gpus.empty()) return "";
  std::map<std::string, int> counts;
  for (const Gpu& gpu : gpus) ++counts[gpu.type];
  if (counts.contains("")) return "gpu:" + std::to_string(gpus.size());
  std::string text;
  for (const auto& [type, count] : counts)
    text += (text.empty() ? "gpu:" : ",gpu:") + type + ":" + std::to_string(count);
  return text;
}

}  // namespace

std::string slurm_conf(const ClusterRecord& record) {
  const MachineRecord& controller = record.machines.front();
  std::string text = std::string(kHeader) + "\nClusterName=" + record.name +
                     "\nSlurmctldHost=" + controller.name + "(" + controller.address + ")\n" +
                     "StateSaveLocation=" + kDirectory + "/slurmctld\n" +
                     "SlurmdSpoolDir=" + kDirectory + "/slurmd" + kSettings + "\n";
  std::string nodes;
  for (const MachineRecord& machine : record.machines) {
    if (!machine.runs_jobs) continue;
    text += "NodeName=" + machine.name + " NodeAddr=" + machine.address +
            " CPUs=" + std::to_string(machine.cpus) +
            " RealMemory=" + std::to_string(machine.memory_mib);
    if (const std::string gres = gres_of(machine.gpus); !gres.empty()) text += " Gres=" + gres;
    text += " State=UNKNOWN\n";
    nodes += (nodes.empty() ? "" : ",") + machine.name;
  }
  if (nodes.empty()) return text;
  return text + "PartitionName=" + kPartition + " Nodes=" + nodes +
         " Default=YES MaxTime=INFINITE State=UP\n";
}

std::string cgroup_conf() {
  return std::string(kHeader) +
         "CgroupPlugin=autodetect\n"
         "ConstrainCores=yes\n"
         "ConstrainRAMSpace=yes\n"
         "ConstrainDevices=yes\n";
}

std::string gres_conf(const ClusterRecord& record) {
  std::string text = std::string(kHeader) + "AutoDetect=off\n";
  for (const MachineRecord& machine : record.machines) {
    if (!machine.runs_jobs) continue;
    const bool typed = std::none_of(machine.gpus.begin(), machine.gpus.end(),
                                    [](const Gpu& gpu) { return gpu.type.empty(); });
    for (const Gpu& gpu : machine.gpus)
      text += "NodeName=" + machine.name + " Name=gpu" + (typed ? " Type=" + gpu.type : "") +
              " File=/dev/nvidia" + std::to_string(gpu.minor) + "\n";
  }
  return text;
}

int64_t memory_for_jobs(int64_t memory_mib) {
  constexpr int64_t kStep = 64;  // MiB: kernels of one machine see amounts that differ by less
  const int64_t memory = memory_mib - memory_mib / 20;
  return std::max<int64_t>(1, memory >= kStep ? memory / kStep * kStep : memory);
}

bool memory_still_fits(int64_t recorded, int64_t memory_mib) {
  return recorded <= memory_mib - memory_mib / 100 && recorded >= memory_mib - memory_mib / 8;
}

}  // namespace trainyard::cluster_setup
