// decoder: src/control_plane/launch/slurm/rest_answers.cpp
//
// Parses any bytes as each of slurmrestd's responses and as a token: parsing must terminate and
// respect the limits.
#include <cstdint>

#include "base/check.hpp"
#include "launch/slurm/job_comment.hpp"
#include "launch/slurm/rest_answers.hpp"

using namespace trainyard;
using namespace trainyard::launch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto jobs = read_rest_jobs(text, "root"))
    for (const auto& job : *jobs)
      CHECK(job.id > 0 && is_job_comment(job.comment), "others are left out");
  if (const auto nodes = read_rest_nodes(text))
    for (const auto& node : *nodes) {
      CHECK(!node.name.empty(), "each has a name");
      CHECK(node.cpus >= 0 && node.memory_mib >= 0 && node.gpus >= 0, "amounts are natural");
    }
  if (const auto id = read_rest_submitted(text)) CHECK(*id > 0, "ids are natural");
  (void)check_rest_answer(200, text);
  (void)check_rest_answer(500, text);
  (void)check_token(text, Instant());
  return 0;
}
