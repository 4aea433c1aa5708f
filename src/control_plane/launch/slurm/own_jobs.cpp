#include "launch/slurm/own_jobs.hpp"

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

std::map<std::string, JobComment> sum_by_node(const std::vector<const OwnJob*>& jobs) {
  std::map<std::string, JobComment> sums;
  for (const OwnJob* own : jobs) {
    if (has_ended(own->job) || own->job.nodes.empty()) continue;
    const auto names = expand_host_list(own->job.nodes);
    if (!names) continue;
    for (const std::string& name : *names) {
      JobComment& sum = sums[name];
      sum.cpus += own->comment.cpus;
      sum.memory_mib += own->comment.memory_mib;
      sum.gpus += own->comment.gpus;
    }
  }
  return sums;
}

}  // namespace trainyard::launch
