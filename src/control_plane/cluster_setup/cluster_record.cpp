#include "cluster_setup/cluster_record.hpp"

#include <set>

#include "base/json.hpp"
#include "base/json_record.hpp"
#include "cluster_setup/names.hpp"

namespace trainyard::cluster_setup {
namespace {

constexpr int64_t kVersion = 1;

constexpr auto kGpu = json_record<Gpu>("gpu", [](auto& side, auto& gpu) {
  side("minor", gpu.minor);
  side.if_set("type", gpu.type);
});

constexpr auto kMachine = json_record<MachineRecord>("machine", [](auto& side, auto& machine) {
  side.if_set("destination", machine.destination);
  side("name", machine.name);
  side("address", machine.address);
  side("cpus", machine.cpus);
  side("memory_mib", machine.memory_mib);
  side.if_set("gpus", machine.gpus, kGpu);
  side("runs_jobs", machine.runs_jobs);
});

constexpr auto kRecord = json_record<ClusterRecord>("cluster", [](auto& side, auto& record) {
  side("version", record.version);
  side("name", record.name);
  side("system", record.system);
  side("machines", record.machines, kMachine);
});

Result<void> check_machine(const MachineRecord& machine) {
  if (!machine.destination.empty()) TRY(check_destination(machine.destination));
  if (!is_node_name(machine.name) || !is_ipv4(machine.address))
    return corrupt("invalid name or address of a machine in the cluster's record");
  if (machine.cpus < 1 || machine.cpus > kCpusMax || machine.memory_mib < 1 ||
      machine.memory_mib > kMemoryMibMax || machine.gpus.size() > size_t(kGpusMax))
    return corrupt("invalid size of the machine '" + machine.name + "' in the cluster's record");
  int64_t last = -1;
  for (const Gpu& gpu : machine.gpus) {
    if (gpu.minor <= last || gpu.minor >= kGpusMax || gpu_type_of(gpu.type) != gpu.type)
      return corrupt("invalid GPU of the machine '" + machine.name + "' in the cluster's record");
    last = gpu.minor;
  }
  return {};
}

}  // namespace

std::string to_text(const ClusterRecord& record) { return dump(kRecord.write(record)) + "\n"; }

Result<ClusterRecord> read_cluster_record(std::string_view text) {
  const Json json = TRY(parse_json(text).in("reading the cluster's record"));
  const ClusterRecord record = TRY(kRecord.read(json).in("reading the cluster's record"));
  if (record.version != kVersion)
    return invalid("the cluster's record has version " + std::to_string(record.version) +
                   ", and this program reads version " + std::to_string(kVersion));
  if (!is_plain_name(record.name) || record.machines.empty() ||
      record.machines.size() > kMachinesMax)
    return corrupt("invalid name or number of machines in the cluster's record");
  std::set<std::string> names;
  for (const MachineRecord& machine : record.machines) {
    TRY(check_machine(machine));
    if (!names.insert(machine.name).second)
      return corrupt("the machine '" + machine.name + "' is twice in the cluster's record");
  }
  return record;
}

}  // namespace trainyard::cluster_setup
