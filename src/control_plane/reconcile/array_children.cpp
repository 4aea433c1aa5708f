#include "reconcile/array_children.hpp"

#include "reconcile/reconcile.hpp"

namespace trainyard::reconcile {

using namespace domain;

std::map<JobNumber, OpenChildren> count_open_children(
    const std::vector<std::shared_ptr<const Job>>& jobs) {
  std::map<JobNumber, OpenChildren> counts;
  for (const auto& job : jobs) {
    if (job->parent == 0 || job->finished()) continue;
    OpenChildren& open = counts[job->parent];
    ++open.all;
    if (job->state == JobState::waiting) ++(job->awaits.empty() ? open.waiting : open.dependent);
  }
  return counts;
}

std::vector<JobNumber> arrays_without_open_children(
    const std::vector<std::shared_ptr<const Job>>& jobs) {
  const auto counts = count_open_children(jobs);
  std::vector<JobNumber> arrays;
  for (const auto& job : jobs) {
    if (!job->is_array() || job->finished() || counts.contains(job->number)) continue;
    const bool all_made = job->children_made == job->spec.array.size;
    if (job->state == JobState::stopping || (job->state == JobState::active && all_made))
      arrays.push_back(job->number);
  }
  return arrays;
}

}  // namespace trainyard::reconcile
