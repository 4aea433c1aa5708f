// Lists the machines of the server, and the hosts of jobs on them.
#include <algorithm>
#include <map>
#include <memory>

#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

constexpr int64_t kMachinesDefault = 100;

// Collects an entry for each machine, ordered by name.
using Lines = std::map<std::string, own::Machine, std::less<>>;

own::Machine& line_of(Lines& lines, const std::string& name) {
  const auto [at, made] = lines.try_emplace(name);
  if (made) {
    at->second.name = name;
    at->second.cpus_used = 0;
    at->second.memory_used_in_bytes = 0;
    at->second.gpus_used = 0;
    at->second.hosts.emplace();
  }
  return at->second;
}

own::MachineHost to_shape(const domain::Job& job, domain::HostIndex index, bool may_describe) {
  const domain::Host& host = job.attempt()->hosts[index];
  own::MachineHost out;
  out.cpus = host.share.cpus;
  out.memory_in_bytes = host.share.memory_bytes;
  out.gpus = host.share.gpus;
  out.state = domain::to_string(host.state);
  out.state_since = host.state_since;
  if (!may_describe) return out;
  out.job_name = job.key.name;
  if (job.spec.queue) set_unless_empty(out.job_display_name, job.spec.display_name);
  out.job_region = job.key.region;
  out.host = domain::host_name(index);
  out.instance_type = job.spec.instance_type(index);
  return out;
}

class MachineList {
 public:
  explicit MachineList(const Services& services) : services_(services) {}

  own::ListMachinesResponse page(const Context& context,
                                 const own::ListMachinesRequest& request) const {
    const Lines lines = all(context);
    const auto wanted = size_t(request.max_results.value_or(kMachinesDefault));
    own::ListMachinesResponse out;
    out.machines.emplace();
    for (auto at = lines.upper_bound(request.next_token.value_or("")); at != lines.end(); ++at) {
      if (out.machines->size() == wanted) {
        out.next_token = out.machines->back().name;
        break;
      }
      out.machines->push_back(at->second);
    }
    return out;
  }

 private:
  Lines all(const Context& context) const {
    Lines lines;
    for (const ServerMachine& machine :
         services_.machines ? services_.machines() : std::vector<ServerMachine>()) {
      own::Machine& line = line_of(lines, machine.name);
      set_unless_empty(line.topology, machine.topology);
      line.cpus = machine.cpus;
      line.memory_in_bytes = machine.memory_bytes;
      line.gpus = machine.gpus;
    }
    for (const auto& job : services_.control.live_jobs()) add(context, *job, lines);
    return lines;
  }

  // An ended attempt has released its machines, except for the hosts of a warm pool.
  void add(const Context& context, const domain::Job& job, Lines& lines) const {
    const domain::Attempt* attempt = job.attempt();
    if (!attempt || (attempt->state == domain::AttemptState::ended && !job.keeps_hosts())) return;
    const bool named = context.may_see_job()(job);
    for (domain::HostIndex i = 0; i < attempt->hosts.size(); ++i) {
      const domain::Host& host = attempt->hosts[i];
      if (host.machine.empty()) continue;
      own::Machine& line = line_of(lines, host.machine);
      *line.cpus_used += host.share.cpus;
      *line.memory_used_in_bytes += host.share.memory_bytes;
      *line.gpus_used += host.share.gpus;
      line.hosts->push_back(to_shape(job, i, named));
    }
  }

  const Services& services_;
};

}  // namespace

void add_machines(OperationTable& table, const Settings&, const Services& services) {
  table.add<own::ListMachines>(
      [list = std::make_shared<MachineList>(services)](const Context& context,
                                                       const own::ListMachinesRequest& request) {
        return Outcome<own::ListMachinesResponse>(list->page(context, request));
      });
}

}  // namespace trainyard::api::trainyard_api
