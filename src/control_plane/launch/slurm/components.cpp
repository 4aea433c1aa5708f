#include "launch/slurm/components.hpp"

#include <algorithm>
#include <map>

#include "launch/slurm/slurm_states.hpp"

namespace trainyard::launch {
namespace {

void add_component(SlurmJob& whole, const SlurmJob& component) {
  if (whole.component_nodes.empty()) whole.component_nodes.push_back(whole.nodes);
  whole.component_nodes.push_back(component.nodes);
  if (!component.nodes.empty()) whole.nodes += (whole.nodes.empty() ? "" : ",") + component.nodes;
  whole.requeued |= component.requeued;
  whole.preempted |= component.preempted;
  if (has_ended(whole) && !has_ended(component)) whole.state = "COMPLETING";
}

}  // namespace

std::vector<const SlurmComponent*> components_of(const SlurmJobRequest& request) {
  std::vector<const SlurmComponent*> components = {&request};
  for (const SlurmComponent& other : request.others) components.push_back(&other);
  return components;
}

std::vector<std::string> nodes_of(const SlurmJobRequest& request) {
  std::vector<std::string> nodes;
  for (const SlurmComponent* component : components_of(request))
    nodes.insert(nodes.end(), component->nodes.begin(), component->nodes.end());
  return nodes;
}

std::string component_name(const std::string& name, size_t component) {
  return component == 0 ? name : name + "." + std::to_string(component);
}

std::vector<SlurmJob> join_components(std::vector<ListedJob> listed) {
  // First components come first, in their order.
  std::ranges::stable_sort(listed, {}, &ListedJob::component);
  std::vector<SlurmJob> jobs;
  std::map<uint64_t, size_t> first;  // by id: index into jobs
  for (ListedJob& each : listed) {
    if (each.component == 0) {
      first.try_emplace(each.job.id, jobs.size());
      jobs.push_back(std::move(each.job));
      continue;
    }
    const auto found = first.find(each.job.id);
    if (found != first.end()) add_component(jobs[found->second], each.job);
  }
  return jobs;
}

}  // namespace trainyard::launch
