#include "reconcile/array_broods.hpp"

#include "reconcile/reconcile.hpp"

namespace trainyard::reconcile {

using namespace domain;

std::map<JobNumber, Brood> broods_of(const std::vector<std::shared_ptr<const Job>>& jobs) {
  std::map<JobNumber, Brood> broods;
  for (const auto& job : jobs) {
    if (job->parent == 0 || job->finished()) continue;
    Brood& brood = broods[job->parent];
    ++brood.all;
    if (job->state == JobState::waiting) ++(job->awaits.empty() ? brood.waiting : brood.awaiting);
  }
  return broods;
}

std::vector<JobNumber> those_to_count(const std::vector<std::shared_ptr<const Job>>& jobs) {
  const auto broods = broods_of(jobs);
  std::vector<JobNumber> arrays;
  for (const auto& job : jobs) {
    if (!job->is_array() || job->finished() || broods.contains(job->number)) continue;
    const bool all_made = job->children_made == job->spec.array.size;
    if (job->state == JobState::stopping || (job->state == JobState::active && all_made))
      arrays.push_back(job->number);
  }
  return arrays;
}

}  // namespace trainyard::reconcile
