#include "sim/workload.hpp"

#include "batch/catalog.hpp"
#include "batch/limits.hpp"

namespace trainyard::sim {

namespace {

using batch::SchedulingPolicy;

constexpr const char* kRegion = "us-east-1";
constexpr const char* kShares[] = {"red", "blue"};

SchedulingPolicy policy_of(const std::string& name, SchedulingPolicy::Kind kind) {
  SchedulingPolicy policy;
  policy.key = {kRegion, name};
  policy.kind = kind;
  return policy;
}

batch::JobQueue queue_of(const std::string& name, const std::string& environment,
                         const std::string& policy = "") {
  batch::JobQueue queue;
  queue.key = {kRegion, name};
  queue.environments = {environment};
  queue.policy = policy;
  return queue;
}

void add_fair_queue(World& world, Resources& resources) {
  resources.fair = true;
  SchedulingPolicy policy = policy_of("weights", SchedulingPolicy::Kind::fair_share);
  policy.weights = {{"red", 1}, {"blue", 0.5}};
  policy.decay_seconds = int64_t(10 + world.random.below(600));
  policy.reservation_percent = world.random.chance(2) ? int64_t(world.random.below(50)) : 0;
  resources.in_order.emplace_back(policy);
  resources.in_order.emplace_back(queue_of("fair", "e", "weights"));
}

// Each share has capacity for two instances, and may borrow unused capacity of another share.
void add_training_queue(World& world, Resources& resources) {
  resources.training = true;
  batch::ServiceEnvironment environment;
  environment.key = {kRegion, "instances"};
  environment.limits = {{std::string(batch::kInstancesUnit), 4}};
  resources.in_order.emplace_back(environment);
  resources.in_order.emplace_back(policy_of("quotas", SchedulingPolicy::Kind::quota_shares));
  batch::JobQueue queue = queue_of("training", "instances", "quotas");
  queue.service = true;
  resources.in_order.emplace_back(queue);
  for (const char* name : kShares) {
    batch::QuotaShare share;
    share.key = {kRegion, batch::quota_share_name("training", name)};
    share.limits = {{std::string(batch::kInstancesUnit), 2}};
    share.strategy = batch::QuotaShare::Strategy(world.random.below(3));
    if (share.strategy == batch::QuotaShare::Strategy::lend_and_borrow && world.random.chance(2))
      share.borrow_percent = 50;
    share.preempts_within = world.random.chance(2);
    resources.in_order.emplace_back(share);
  }
}

// Searches exhaustively: gangs and clusters are small here.
bool fits(const std::vector<domain::Share>& hosts, size_t next,
          std::vector<launch::Machine>& left) {
  if (next == hosts.size()) return true;
  for (launch::Machine& machine : left) {
    if (machine.cpus < hosts[next].cpus || machine.memory_bytes < hosts[next].memory_bytes)
      continue;
    machine.cpus -= hosts[next].cpus;
    machine.memory_bytes -= hosts[next].memory_bytes;
    const bool rest = fits(hosts, next + 1, left);
    machine.cpus += hosts[next].cpus;
    machine.memory_bytes += hosts[next].memory_bytes;
    if (rest) return true;
  }
  return false;
}

}  // namespace

Resources some_resources(World& world) {
  Resources resources;
  batch::ComputeEnvironment environment;
  environment.key = {kRegion, "e"};
  // The reservation for inactive shares leaves capacity for a child.
  if (world.random.chance(2)) environment.cpus_max = double(2 + world.random.below(4));
  resources.in_order.emplace_back(environment);
  resources.in_order.emplace_back(queue_of("q", "e"));
  if (world.random.chance(3)) add_fair_queue(world, resources);
  if (world.random.chance(2)) add_training_queue(world, resources);
  return resources;
}

bool fits_on(std::vector<launch::Machine> machines, const std::vector<domain::Share>& hosts) {
  return fits(hosts, 0, machines);
}

control::CreateJob some_training_job(World& world, uint64_t number) {
  control::CreateJob job;
  job.key = {"us-east-1", "job-" + std::to_string(number)};
  job.spec.image = "machine";
  job.spec.principal = world.random.chance(2) ? "alice" : "bob";
  const char* types[] = {"ml.t3.medium", "ml.m5.large", "ml.m5.xlarge", "ml.c5.2xlarge"};
  job.spec.groups = {
      {"homogeneousCluster", types[world.random.below(4)], uint32_t(1 + world.random.below(3))}};
  // A job that fits on no machine.
  if (world.random.chance(10)) job.spec.groups[0].instance_type = kTooLargeType;
  const bool endless = world.random.chance(5);
  if (endless) job.spec.environment[kEndlessVariable] = "1";
  job.spec.max_runtime_seconds = endless && world.random.chance(2) ? 30 : 86400;
  if (world.random.chance(4)) job.tags = {{"team", "red"}};
  if (world.random.chance(4)) {
    job.spec.groups.push_back(
        {"others", types[world.random.below(4)], uint32_t(1 + world.random.below(2))});
  }
  if (world.random.chance(3)) {
    job.spec.spot = true;
    // These limits often end a job early, at any point of its life.
    job.spec.max_wait_seconds =
        endless || world.random.chance(4) ? 30 + world.random.below(300) : 86400;
    job.spec.max_runtime_seconds =
        std::min(job.spec.max_runtime_seconds, *job.spec.max_wait_seconds);
  } else if (world.random.chance(3)) {
    job.spec.keep_alive_seconds = 10 + int64_t(world.random.below(300));
  }
  if (world.random.chance(3)) job.spec.retries_max = uint32_t(1 + world.random.below(3));
  if (world.random.chance(6)) job.spec.max_pending_seconds = 20 + int64_t(world.random.below(200));
  return job;
}

std::vector<control::CreateJob> some_service_jobs(World& world, const Resources& resources) {
  std::vector<control::CreateJob> jobs;
  for (uint64_t n = resources.training ? 2 + world.random.below(6) : 0; n > 0; --n) {
    control::CreateJob job;
    job.key = {kRegion, "service-" + std::to_string(n)};
    job.spec.image = "machine";
    job.spec.groups = {{"homogeneousCluster", "ml.t3.medium", uint32_t(1 + world.random.below(2))}};
    job.spec.max_runtime_seconds = 86400;
    job.spec.queue.emplace();
    job.spec.display_name = "lesson";
    job.spec.queue->name = "training";
    job.spec.queue->quota_share = kShares[world.random.below(2)];
    job.spec.queue->priority = int64_t(world.random.below(3));
    job.spec.retry.attempts_max = uint32_t(1 + world.random.below(3));
    if (world.random.chance(3)) job.spec.queue->preemptions_max = uint32_t(world.random.below(3));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<control::CreateJob> some_extreme_jobs(World& world) {
  constexpr int64_t kExtremes[] = {-1, INT32_MIN, INT64_MIN, int64_t{1} << 50, INT64_MAX};
  std::vector<control::CreateJob> jobs;
  for (uint64_t n = 1 + world.random.below(6); n > 0; --n) {
    control::CreateJob job;
    job.key = {kRegion, "extreme-" + std::to_string(n)};
    job.spec.image = "machine";
    job.spec.principal = kHostileUser;
    job.spec.groups = {{"homogeneousCluster", "ml.t3.medium", 1}};
    const int64_t value = kExtremes[world.random.below(std::size(kExtremes))];
    switch (world.random.below(7)) {
      case 0:
        job.spec.groups = {{"a", "ml.t3.medium", INT32_MAX},
                           {"b", "ml.t3.medium", INT32_MAX},
                           {"c", "ml.t3.medium", 2}};
        break;
      case 1:
        job.spec.groups.front().count = world.random.chance(2) ? 0 : UINT32_MAX;
        break;
      case 2:
        job.spec.max_runtime_seconds = value;
        break;
      case 3:
        job.spec.max_wait_seconds = value;
        job.spec.spot = true;
        break;
      case 4:
        job.spec.keep_alive_seconds = value;
        break;
      case 5:
        job.spec.groups.front().share = domain::Share{1, value, 0};
        break;
      default:
        job.spec.volume_gib = value;
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

reconcile::CreateJob job_of_an_earlier_version() {
  reconcile::CreateJob job;
  job.number = 1;
  job.key = {kRegion, "poison"};
  job.account = "123456789012";
  job.spec.image = "machine";
  job.spec.principal = kHostileUser;
  job.spec.groups = {
      {"a", "ml.t3.medium", INT32_MAX}, {"b", "ml.t3.medium", INT32_MAX}, {"c", "ml.t3.medium", 2}};
  job.arn = control::job_arn(job.account, job.key);
  return job;
}

std::vector<control::CreateJob> some_arrays(World& world, const Resources& resources) {
  std::vector<control::CreateJob> arrays;
  for (uint64_t n = world.random.below(4); n > 0; --n) {
    control::CreateJob job;
    job.key = {"us-east-1", "array-" + std::to_string(n)};
    job.spec.image = "machine";
    job.spec.groups = {{"default", "1 vCPU", 1, domain::Share{1, int64_t{1} << 30, 0}}};
    job.spec.max_runtime_seconds = batch::kRuntimeSecondsMax;
    job.spec.queue.emplace();
    job.spec.contract = domain::Contract::plain;
    job.spec.display_name = "digits";
    job.spec.queue->name = resources.fair && world.random.chance(2) ? "fair" : "q";
    if (job.spec.queue->name == "fair") job.spec.queue->share = kShares[world.random.below(2)];
    job.spec.definition = "arn:aws:batch:us-east-1:123456789012:job-definition/digits:1";
    job.spec.array.size = uint32_t(2 + world.random.below(2) * world.random.below(8));
    job.spec.retry.attempts_max = uint32_t(1 + world.random.below(3));
    job.spec.array.sequential = world.random.chance(4);
    for (const control::CreateJob& other : arrays) {
      if (world.random.chance(4)) job.spec.depends_on.push_back(other.key.name);
      if (other.spec.array.size == job.spec.array.size && world.random.chance(2))
        job.spec.depends_on_alike.push_back(other.key.name);
    }
    arrays.push_back(std::move(job));
  }
  return arrays;
}

}  // namespace trainyard::sim
