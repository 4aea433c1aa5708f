#include "batch/variables.hpp"

#include "base/check.hpp"
#include "domain/array.hpp"

namespace trainyard::batch {

using namespace domain;

std::map<std::string, std::string> variables_of(const Job& job, const Attempt& attempt,
                                                HostIndex host) {
  CHECK(job.spec.queue, "only a Batch job has these variables");
  std::map<std::string, std::string> variables{
      {"AWS_BATCH_JOB_ID", job.key.name},
      {"AWS_BATCH_JQ_NAME", job.spec.queue->name},
      {"AWS_BATCH_CE_NAME", attempt.environment},
      {"AWS_BATCH_JOB_ATTEMPT", std::to_string(attempt.number)}};
  if (job.parent != 0) {
    variables["AWS_BATCH_JOB_ARRAY_INDEX"] = std::to_string(array_index(job));
    variables["AWS_BATCH_JOB_ARRAY_SIZE"] = std::to_string(job.spec.array.size);
  }
  if (const auto main = job.spec.main_host()) {
    variables["AWS_BATCH_JOB_NODE_INDEX"] = std::to_string(host);
    variables["AWS_BATCH_JOB_NUM_NODES"] = std::to_string(job.spec.hosts());
    variables["AWS_BATCH_JOB_MAIN_NODE_INDEX"] = std::to_string(*main);
  }
  return variables;
}

}  // namespace trainyard::batch
