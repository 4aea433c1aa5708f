// decoder: src/control_plane/launch/slurm/answers.cpp
//
// Parses any bytes as the output of each of Slurm's programs, and as a job's comment: parsing must
// respect the limits, and formatting and parsing must not change a comment.
#include <cstdint>

#include "base/check.hpp"
#include "launch/slurm/answers.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/slurm_states.hpp"

using namespace trainyard;
using namespace trainyard::launch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto jobs = read_jobs(text, "@", "root"))
    for (const auto& job : *jobs) CHECK(is_job_comment(job.comment), "others are left out");
  if (const auto jobs = read_ended(text, "root"))
    for (const auto& job : *jobs) CHECK(job.id > 0 && has_ended(job), "others are left out");
  if (const auto nodes = read_nodes(text))
    for (const auto& node : *nodes) {
      CHECK(!node.name.empty(), "each has a name");
      CHECK(node.cpus >= 0 && node.memory_mib >= 0 && node.gpus >= 0, "amounts are natural");
    }
  if (const auto names = expand_host_list(text))
    CHECK(names->size() <= kSlurmNodesMax && join_names(*names).size() + 1 >= names->size(),
          "lists have a limit");
  (void)read_submitted(text);
  (void)error_of_slurm(text);
  CHECK(gpus_of_gres(text) >= 0, "amounts are natural");
  if (const auto comment = read_job_comment(text)) {
    const auto again = read_job_comment(to_text(*comment));
    CHECK(again && again->attempt == comment->attempt && again->seal == comment->seal &&
              again->hosts == comment->hosts && again->subnet == comment->subnet,
          "a comment is read as it was written");
  }
  return 0;
}
