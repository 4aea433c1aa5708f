#include "launch/slurm/power_saving.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "launch/slurm/answers.hpp"
#include "launch/slurm/slurm_states.hpp"

namespace trainyard::launch {

void PowerSaving::add(const SlurmNode& node) {
  const SlurmNodeKind* kind = kind_of_node(kinds_, node);
  if (kind == nullptr || !is_in(partitions_, node)) return;
  Known& known = known_[size_t(kind - kinds_.data())];
  const auto request = requests_.find(node.name);
  known.nodes.push_back({node.name,
                         request == requests_.end() ? power_of(node) : request->second.power,
                         node.cpus_allocated > 0});
  MachineKind& shown = known.shown;
  const bool first = known.nodes.size() == 1;
  shown.cpus = first ? double(node.cpus) : std::min(shown.cpus, double(node.cpus));
  const int64_t memory = node.memory_mib << 20;
  shown.memory_bytes = first ? memory : std::min(shown.memory_bytes, memory);
  shown.gpus = first ? node.gpus : std::min(shown.gpus, node.gpus);
}

void PowerSaving::count(Known& known, uint32_t nodes_max) const {
  uint32_t others = 0;  // nodes that do not count as coming yet
  for (const Node& node : known.nodes) {
    // A node that powers up for a job of others is theirs.
    if (node.power == NodePower::coming && !node.allocated) ++known.shown.coming;
    others += node.power == NodePower::off || node.power == NodePower::leaving;
  }
  known.shown.machines_max = known.offered + known.shown.coming + others;
  if (nodes_max > 0) known.shown.machines_max = std::min(known.shown.machines_max, nodes_max);
}

std::vector<Machine> PowerSaving::offer(const SlurmAnswer& answer, std::vector<Machine> machines) {
  if (kinds_.empty()) return machines;
  std::erase_if(requests_, [&](const auto& each) { return each.second.change <= answer.changes; });
  known_.assign(kinds_.size(), Known());
  std::map<std::string_view, size_t> kind_of;
  for (const SlurmNode& node : answer.nodes) {
    add(node);
    if (const SlurmNodeKind* kind = kind_of_node(kinds_, node))
      kind_of[node.name] = size_t(kind - kinds_.data());
  }
  std::erase_if(machines, [&](const Machine& machine) { return requests_.contains(machine.name); });
  for (Machine& machine : machines) {
    const auto kind = kind_of.find(machine.name);
    if (kind == kind_of.end()) continue;
    machine.kind = kinds_[kind->second].name;
    ++known_[kind->second].offered;
  }
  for (size_t k = 0; k < kinds_.size(); ++k) {
    known_[k].shown.name = kinds_[k].name;
    known_[k].shown.note = failed_nodes(kinds_, kinds_[k], answer.nodes);
    count(known_[k], kinds_[k].nodes_max);
  }
  return machines;
}

std::vector<MachineKind> PowerSaving::kinds() const {
  std::vector<MachineKind> kinds;
  for (const Known& known : known_)
    if (!known.nodes.empty()) kinds.push_back(known.shown);
  return kinds;
}

Result<void> PowerSaving::grow(Slurm& slurm, const std::string& kind, uint32_t machines) {
  const auto known = std::ranges::find_if(
      known_, [&](const Known& each) { return each.shown.name == kind && !each.nodes.empty(); });
  if (known == known_.end()) return not_found("unknown kind of machine " + kind);
  const MachineKind& shown = known->shown;
  const uint32_t there = known->offered + shown.coming;
  const uint32_t wanted = std::min(machines, shown.machines_max);
  std::vector<std::string> names;
  for (const Node& node : known->nodes)
    if (node.power == NodePower::off && there + names.size() < wanted &&
        names.size() < kNodesPoweredAtOnceMax)
      names.push_back(node.name);
  if (!names.empty()) {
    TRY(slurm.power_up(names).in("powering up nodes of kind " + kind));
    const uint64_t change = note_change_();
    for (Node& node : known->nodes)
      if (std::ranges::find(names, node.name) != names.end()) {
        node.power = NodePower::coming;
        requests_[node.name] = {NodePower::coming, change};
        ++known->shown.coming;
      }
    log(Level::info, "launch", "powering up Slurm nodes",
        {{"kind", kind}, {"nodes", join_names(names)}});
  }
  if (machines <= shown.machines_max) return {};
  return exhausted("kind " + kind + ": " + std::to_string(machines) +
                   " nodes are requested, at most " + std::to_string(shown.machines_max) +
                   " can be on" + (shown.note.empty() ? "" : ": " + shown.note));
}

Result<void> PowerSaving::shrink(Slurm& slurm, const std::string& machine) {
  for (Known& known : known_)
    for (Node& node : known.nodes) {
      if (node.name != machine) continue;
      if (node.power != NodePower::on || node.allocated) return {};
      TRY(slurm.power_down({machine}).in("powering down a node"));
      node.power = NodePower::leaving;
      requests_[machine] = {NodePower::leaving, note_change_()};
      log(Level::info, "launch", "powering down an idle Slurm node",
          {{"kind", known.shown.name}, {"node", machine}});
      return {};
    }
  return {};
}

}  // namespace trainyard::launch
