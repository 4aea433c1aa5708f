// Checks limits, preemptions, machines and warm pools.
#include <algorithm>

#include "batch/catalog.hpp"
#include "domain/instance_quota.hpp"
#include "sim/checkers.hpp"

namespace trainyard::sim {

using namespace batch;
using namespace domain;

void Checkers::set_limits(const std::vector<Resource>& resources,
                          std::vector<InstanceQuota> quotas) {
  for (const Resource& resource : resources) put(catalog_, ResourceChange::create, resource);
  quotas_ = std::move(quotas);
}

// Counts the resources of attempts that have not ended, and compares them with each limit.
void Checkers::check_limits() {
  std::map<std::string, std::pair<double, double>> used;  // by limit: usage and maximum
  const auto count = [&](const std::string& limit, double amount, double most) {
    used[limit].first += amount;
    used[limit].second = most;
  };
  for (const auto& [number, job] : durable_) {
    const Attempt* attempt = job.attempt();
    if (!attempt || attempt->state == AttemptState::ended) continue;
    const ComputeEnvironment* compute =
        catalog_.environment({job.key.region, attempt->environment});
    if (compute && compute->cpus_max > 0)
      for (const Host& host : attempt->hosts)
        count("compute environment " + compute->key.name, host.share.cpus, compute->cpus_max);
    if (job.spec.contract == Contract::plain) continue;
    for (const InstanceGroup& group : job.spec.groups)
      if (const auto* quota =
              quota_of(quotas_, job.spec.principal, job.key.region, group.instance_type))
        count(job.spec.principal + "'s quota of " + group.instance_type, group.count,
              double(quota->count));
    if (!job.spec.queue) continue;
    const ServiceEnvironment* service =
        catalog_.service_environment({job.key.region, attempt->environment});
    World::check(service, title(job) + " is in no service environment");
    count("service environment " + service->key.name, job.spec.hosts(),
          double(service->limits[0].capacity));
    const std::string& name = job.spec.queue->quota_share;
    const QuotaShare* share =
        catalog_.quota_share({job.key.region, quota_share_name(job.spec.queue->name, name)});
    if (!share) continue;
    const auto own = double(share->limits[0].capacity);
    double most = own;
    if (share->strategy == QuotaShare::Strategy::lend_and_borrow)
      most = share->borrow_percent ? own + own * double(*share->borrow_percent) / 100
                                   : double(service->limits[0].capacity);
    count("quota share " + name, job.spec.hosts(), most);
  }
  for (const auto& [limit, each] : used)
    World::check(each.first <= each.second + 1e-6, limit + ": " + std::to_string(each.first) +
                                                       " of " + std::to_string(each.second) +
                                                       " is used");
}

void Checkers::machine_released(const std::string& machine) {
  World::check(used_[machine].cpus < 1e-6 && used_[machine].memory_bytes == 0,
               "machine " + machine + " was released, but has allocations");
  for (const auto& [number, job] : durable_)
    if (job.attempt() && job.attempt()->state != AttemptState::ended)
      for (const Host& host : job.attempt()->hosts)
        World::check(host.machine != machine, "machine " + machine + " was released, but " +
                                                  title(job) + " is placed on it");
}

// Checks a job that failed because it was preempted more often than it allows.
void Checkers::check_preemptions(const Job& job) {
  const auto count = std::ranges::count_if(job.attempts, &Attempt::preempted);
  const auto& most = job.spec.queue->preemptions_max;
  World::check(most && count == int64_t(*most) + 1,
               title(job) + " failed after " + std::to_string(count) + " preemptions");
  World::check(job.failure_reason.starts_with("ClientError: it was preempted "),
               title(job) + " failed for '" + job.failure_reason + "'");
}

void Checkers::check_pools(const Job& before, const Job& after) {
  if (!after.warm_pool)
    return World::check(!before.warm_pool, title(before) + ": its warm pool was removed");
  const WarmPool& pool = *after.warm_pool;
  World::check(!before.warm_pool || pool.state >= before.warm_pool->state,
               title(before) + ": its warm pool returned to an earlier state");
  World::check(pool.state == WarmPoolState::in_use || after.finished(),
               title(before) + " runs, but its warm pool is not in use");
  if (!pool.ended || !pool.available || pool.state == WarmPoolState::reused) return;
  // A shortened keep-alive time takes effect when it is set, so the longer time is the limit.
  const int64_t seconds = std::max(pool.keep_alive_seconds,
                                   before.warm_pool ? before.warm_pool->keep_alive_seconds : 0);
  World::check(*pool.ended - *pool.available <= std::chrono::seconds(seconds),
               title(before) + ": its warm pool was billed beyond its keep-alive time");
  if (after.attempts.size() == before.attempts.size() || after.attempt()->warm_pool == 0) return;
  const Job* left = durable(after.attempt()->warm_pool);
  World::check(left && left->keeps_hosts(),
               title(after) + " reused hosts of a job without a warm pool");
  World::check(left->spec.role_arn == after.spec.role_arn &&
                   left->attempt()->hosts.size() == after.attempt()->hosts.size(),
               title(after) + " reused a warm pool that does not match its request");
  for (size_t host = 0; host < after.attempt()->hosts.size(); ++host)
    World::check(left->attempt()->hosts[host].machine == after.attempt()->hosts[host].machine,
                 title(after) + " reused hosts, but runs on other machines");
}

}  // namespace trainyard::sim
