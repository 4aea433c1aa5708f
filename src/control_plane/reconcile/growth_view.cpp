#include "reconcile/growth_view.hpp"

#include <algorithm>
#include <set>

#include "batch/catalog.hpp"

namespace trainyard::reconcile {

std::string failed_growth(const std::vector<launch::MachineKind>& kinds) {
  std::string text;
  for (const launch::MachineKind& kind : kinds)
    if (!kind.note.empty()) text += (text.empty() ? "; cannot be added: " : "; ") + kind.note;
  return text;
}

std::string reason_of_growth(const std::vector<launch::MachineKind>& kinds) {
  std::string coming;
  for (const launch::MachineKind& kind : kinds)
    if (kind.coming > 0)
      coming += (coming.empty() ? ": " : ", ") + std::to_string(kind.coming) + " of kind " +
                kind.name + (kind.coming == 1 ? " is" : " are") + " being added";
  return "waiting for machines" + (coming.empty() ? " to be added" : coming) + failed_growth(kinds);
}

std::vector<schedule::MachineKind> kinds_of(const std::vector<launch::MachineKind>& kinds,
                                            const std::vector<launch::Machine>& machines,
                                            const batch::Catalog* catalog) {
  std::vector<schedule::MachineKind> views;
  for (const launch::MachineKind& kind : kinds) {
    schedule::MachineKind view;
    view.name = kind.name;
    view.total = {kind.cpus, kind.memory_bytes, kind.gpus};
    view.cpus_max = kind.cpus * kind.machines_max;
    view.machines = uint32_t(std::ranges::count(machines, kind.name, &launch::Machine::kind));
    view.coming = kind.coming;
    views.push_back(std::move(view));
  }
  if (!catalog) return views;
  for (const auto& [key, environment] : catalog->environments) {
    if (!environment.enabled) continue;
    const auto kind =
        std::ranges::find_if(views, [&, &types = environment.instance_types](const auto& view) {
          return schedule::may_be_made_for(types, view.name);
        });
    if (kind == views.end()) continue;
    kind->cpus_min += environment.cpus_min;
    kind->cpus_desired += environment.cpus_desired;
  }
  for (schedule::MachineKind& view : views) {
    view.cpus_min = std::min(view.cpus_min, view.cpus_max);
    view.cpus_desired = std::min(view.cpus_desired, view.cpus_max);
  }
  return views;
}

IdleSince idle_since(const IdleSince& before, const std::vector<launch::Machine>& machines,
                     const schedule::Snapshot& snapshot, const schedule::Plan& plan, Instant now) {
  std::set<std::string_view> busy;
  const auto use = [&](const std::vector<schedule::Placement>& hosts) {
    for (const schedule::Placement& host : hosts) busy.insert(host.machine);
  };
  for (const schedule::Running& running : snapshot.running) use(running.hosts);
  for (const schedule::Pool& pool : snapshot.pools) use(pool.hosts);
  for (const schedule::Start& start : plan.starts) use(start.hosts);
  IdleSince idle;
  for (const launch::Machine& machine : machines) {
    if (machine.kind.empty() || busy.contains(machine.name)) continue;
    const auto was = before.find(machine.name);
    idle.emplace(machine.name, was == before.end() ? now : was->second);
  }
  return idle;
}

}  // namespace trainyard::reconcile
