// Names, lists and joins the components of Slurm's heterogeneous jobs.
//
// Slurm lists such a job as one job for each component, with an id, a state and nodes of its own:
// 7+0, 7+1 and so on, where 7 is the id of the first one. A change of the first component's name or
// comment, and its cancellation, apply to all.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "launch/slurm/slurm.hpp"

namespace trainyard::launch {

// Slurm rejects jobs with more components.
inline constexpr size_t kSlurmComponentsMax = 128;

// Returns the components of a job, which must outlive the result.
std::vector<const SlurmComponent*> components_of(const SlurmJobRequest& request);

// Returns all nodes of a job, by component.
std::vector<std::string> nodes_of(const SlurmJobRequest& request);

// Returns the name of a component: "NAME" for the first one, or "NAME.1". With one name for all,
// they would wait for one another, since their dependency is `singleton`.
std::string component_name(const std::string& name, size_t component);

// A job as Slurm lists it.
struct ListedJob {
  SlurmJob job;  // with the id of the first component
  size_t component = 0;
};

// Joins the components of each job, in the order of the first components. A job has ended when all
// its components have. Components without a first one are left out.
std::vector<SlurmJob> join_components(std::vector<ListedJob> listed);

}  // namespace trainyard::launch
