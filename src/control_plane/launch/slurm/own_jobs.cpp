#include "launch/slurm/own_jobs.hpp"

#include <algorithm>

#include "launch/slurm/answers.hpp"
#include "launch/slurm/slurm_states.hpp"

namespace trainyard::launch {

std::optional<OwnJob> read_own_job(const SlurmJob& job, const OwnJob* known,
                                   const std::string& mark, const UnsealToken& unseal) {
  if (known != nullptr && known->job.comment == job.comment && known->job.user == job.user)
    return OwnJob{job, known->comment, known->token};
  auto comment = read_job_comment(job.comment);
  if (!comment || comment->mark != mark) return {};
  // Another server may have the same mark; it has another key.
  auto token = unseal(comment->seal, seal_context(*comment, job.user));
  if (!token) return {};
  return OwnJob{job, *std::move(comment), *std::move(token)};
}

std::map<std::string, NodeAmounts> sum_by_node(const std::vector<const OwnJob*>& jobs) {
  std::map<std::string, NodeAmounts> sums;
  for (const OwnJob* own : jobs) {
    if (has_ended(own->job)) continue;
    auto components = own->job.component_nodes;
    if (components.empty()) components = {own->job.nodes};
    for (size_t i = 0; i < std::min(components.size(), own->comment.amounts.size()); ++i) {
      const auto names = expand_host_list(components[i]);
      if (!names) continue;
      for (const std::string& name : *names) sums[name].add(own->comment.amounts[i]);
    }
  }
  return sums;
}

}  // namespace trainyard::launch
