#include "sim/wishes.hpp"

namespace trainyard::sim {

std::vector<control::NewJob> some_arrays(World& world) {
  std::vector<control::NewJob> arrays;
  for (uint64_t n = world.random.below(4); n > 0; --n) {
    control::NewJob job;
    job.key = {"us-east-1", "array-" + std::to_string(n)};
    job.spec.image = "machine";
    job.spec.groups = {{"default", "1 vCPU", 1, domain::Share{1, int64_t{1} << 30, 0}}};
    job.spec.max_runtime_seconds = domain::kBatchRuntimeSecondsMax;
    domain::BatchPart& part = job.spec.batch.emplace();
    part.name = "digits";
    part.queue = "q";
    part.definition = "arn:aws:batch:us-east-1:123456789012:job-definition/digits:1";
    part.array_size = uint32_t(2 + world.random.below(2) * world.random.below(8));
    part.attempts_max = uint32_t(1 + world.random.below(3));
    part.sequential = world.random.chance(4);
    for (const control::NewJob& other : arrays) {
      if (world.random.chance(4)) part.depends_on.push_back(other.key.name);
      if (other.spec.batch->array_size == part.array_size && world.random.chance(2))
        part.depends_on_alike.push_back(other.key.name);
    }
    arrays.push_back(std::move(job));
  }
  return arrays;
}

}  // namespace trainyard::sim
