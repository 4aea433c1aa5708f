#include "exposition/cluster_families.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace trainyard::exposition {
namespace {

constexpr std::string_view kFixedKind = "fixed";      // permanent machines
constexpr std::string_view kUnknownKind = "unknown";  // machines that were removed while in use

struct Amounts {
  double machines = 0, cpus = 0, cpus_used = 0, memory = 0, memory_used = 0, gpus = 0,
         gpus_used = 0;
};
using ByKind = std::map<std::string, Amounts>;

void add_jobs(const LiveJobs& jobs, Families& families) {
  std::map<std::string_view, double> by_state;
  std::map<std::tuple<std::string, std::string, std::string_view>, double> by_queue;
  for (const domain::JobState state : enumerators<domain::JobState>())
    if (!domain::is_final(state)) by_state[domain::to_string(state)] = 0;
  for (const auto& job : jobs) {
    const std::string_view state = domain::to_string(job->state);
    ++by_state[state];
    if (domain::is_final(job->state)) continue;
    ++by_queue[{job->key.region, job->spec.queue ? job->spec.queue->name : "", state}];
  }
  Family& states = families.add("trainyard_jobs", FamilyType::gauge,
                                "Jobs that have not ended or still hold resources, by state.");
  for (const auto& [state, count] : by_state) states.sample({{"state", std::string(state)}}, count);
  Family& queues =
      families.add("trainyard_queue_jobs", FamilyType::gauge,
                   "Jobs of a queue, by state; the queue \"\" has the jobs without a queue.");
  for (const auto& [name, count] : by_queue)
    queues.sample({{"region", std::get<0>(name)},
                   {"queue", std::get<1>(name)},
                   {"state", std::string(std::get<2>(name))}},
                  count);
}

// An attempt that has ended has released its machines, except for the hosts of a warm pool.
bool holds_machines(const domain::Job& job) {
  const domain::Attempt* attempt = job.attempt();
  return attempt && (attempt->state != domain::AttemptState::ended || job.keeps_hosts());
}

void add_hosts(const LiveJobs& jobs, const std::map<std::string, std::string>& kind_of,
               ByKind& kinds, Families& families) {
  std::map<std::string_view, double> by_state;
  for (const auto& job : jobs) {
    if (!holds_machines(*job)) continue;
    for (const domain::Host& host : job->attempt()->hosts) {
      ++by_state[domain::to_string(host.state)];
      if (host.machine.empty()) continue;
      const auto kind = kind_of.find(host.machine);
      Amounts& amounts = kinds[kind == kind_of.end() ? std::string(kUnknownKind) : kind->second];
      amounts.cpus_used += host.share.cpus;
      amounts.memory_used += double(host.share.memory_bytes);
      amounts.gpus_used += double(host.share.gpus);
    }
  }
  Family& hosts = families.add("trainyard_hosts", FamilyType::gauge,
                               "Hosts of jobs that hold a part of a machine, by state.");
  by_state.try_emplace(domain::to_string(domain::HostState::running), 0);
  for (const auto& [state, count] : by_state) hosts.sample({{"state", std::string(state)}}, count);
}

void add_amounts(const ByKind& kinds, Families& families) {
  const auto add = [&](std::string_view name, std::string_view help,
                       const std::function<double(const Amounts&)>& value) {
    Family& family = families.add(name, FamilyType::gauge, help);
    for (const auto& [kind, amounts] : kinds) family.sample({{"kind", kind}}, value(amounts));
  };
  add("trainyard_machines", "Machines, by kind.", [](const auto& of) { return of.machines; });
  add("trainyard_machine_cpus", "Processors of all machines of a kind.",
      [](const auto& of) { return of.cpus; });
  add("trainyard_machine_used_cpus", "Processors that hosts of jobs hold.",
      [](const auto& of) { return of.cpus_used; });
  add("trainyard_machine_free_cpus", "Processors that no host of a job holds.",
      [](const auto& of) { return std::max(0.0, of.cpus - of.cpus_used); });
  add("trainyard_machine_memory_bytes", "Memory of all machines of a kind.",
      [](const auto& of) { return of.memory; });
  add("trainyard_machine_used_memory_bytes", "Memory that hosts of jobs hold.",
      [](const auto& of) { return of.memory_used; });
  add("trainyard_machine_accelerators", "GPUs of all machines of a kind.",
      [](const auto& of) { return of.gpus; });
  add("trainyard_machine_used_accelerators", "GPUs that hosts of jobs hold.",
      [](const auto& of) { return of.gpus_used; });
  add("trainyard_machine_free_accelerators", "GPUs that no host of a job holds.",
      [](const auto& of) { return std::max(0.0, of.gpus - of.gpus_used); });
}

}  // namespace

void add_cluster_families(const LiveJobs& jobs, const std::vector<ClusterMachine>& machines,
                          Families& families) {
  std::map<std::string, std::string> kind_of;
  ByKind kinds;
  for (const ClusterMachine& machine : machines) {
    const std::string kind = machine.kind.empty() ? std::string(kFixedKind) : machine.kind;
    kind_of[machine.name] = kind;
    Amounts& amounts = kinds[kind];
    ++amounts.machines;
    amounts.cpus += machine.cpus;
    amounts.memory += double(machine.memory_bytes);
    amounts.gpus += double(machine.gpus);
  }
  add_jobs(jobs, families);
  add_hosts(jobs, kind_of, kinds, families);
  add_amounts(kinds, families);
}

}  // namespace trainyard::exposition
