// Implements GetJobQueueSnapshot: the jobs at the front of a queue, and the usage by share.
#include <algorithm>
#include <functional>

#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch_api/requests.hpp"
#include "batch_api/service.hpp"
#include "reconcile/queue_head.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::Job;
using domain::JobKey;

constexpr size_t kSharesListed = 20;  // those with the highest usage, as on AWS

using Usage = std::map<std::string, double>;  // by unit

void add(Usage& usage, const Usage& more) {
  for (const auto& [unit, quantity] : more) usage[unit] += quantity;
}

// The usage of a job with an allocation: vCPU, or for service jobs instances by type.
Usage usage_of(const Job& job) {
  Usage usage;
  const domain::Attempt* attempt = job.attempt();
  if (!attempt || attempt->state == domain::AttemptState::ended) return usage;
  if (job.spec.contract == domain::Contract::training) {
    for (const domain::InstanceGroup& group : job.spec.groups)
      usage[group.instance_type] += group.count;
  } else {
    for (const domain::Host& host : attempt->hosts) usage["VCPU"] += host.share.cpus;
  }
  return usage;
}

// The shares with the highest usage, in descending order.
std::vector<std::pair<std::string, Usage>> top(const std::map<std::string, Usage>& by_share) {
  std::vector<std::pair<std::string, Usage>> shares(by_share.begin(), by_share.end());
  const auto sum = [](const std::pair<std::string, Usage>& share) {
    double all = 0;
    for (const auto& [unit, quantity] : share.second) all += quantity;
    return all;
  };
  std::ranges::stable_sort(shares, std::greater(), sum);
  if (shares.size() > kSharesListed) shares.resize(kSharesListed);
  return shares;
}

batch::QueueSnapshotUtilizationDetail utilization_of(
    const catalog::Catalog& stored, const catalog::JobQueue& queue,
    const std::vector<std::shared_ptr<const Job>>& jobs, Instant now) {
  Usage total;
  std::map<std::string, Usage> by_share;
  for (const auto& job : jobs) {
    if (!job->spec.queue || job->spec.queue->name != queue.key.name ||
        job->key.region != queue.key.region)
      continue;
    const Usage usage = usage_of(*job);
    if (usage.empty()) continue;
    add(total, usage);
    if (!job->spec.queue->share.empty() || !job->spec.queue->quota_share.empty())
      add(by_share[job->spec.queue->share.empty() ? job->spec.queue->quota_share
                                                  : job->spec.queue->share],
          usage);
  }
  batch::QueueSnapshotUtilizationDetail out;
  out.total_capacity_usage = by_unit<batch::QueueSnapshotCapacityUsage>(total);
  out.last_updated_at = to_milliseconds(now);
  const catalog::SchedulingPolicy* policy = stored.policy_of(queue);
  if (!policy) return out;
  if (policy->kind == catalog::SchedulingPolicy::Kind::fair_share) {
    out.fairshare_utilization.emplace();
    out.fairshare_utilization->active_share_count = int64_t(by_share.size());
    out.fairshare_utilization->top_capacity_utilization.emplace();
    for (const auto& [share, usage] : top(by_share)) {
      batch::FairshareCapacityUtilization each;
      each.share_identifier = share;
      each.capacity_usage = by_unit<batch::FairshareCapacityUsage>(usage);
      out.fairshare_utilization->top_capacity_utilization->push_back(std::move(each));
    }
    return out;
  }
  out.quota_share_utilization.emplace();
  out.quota_share_utilization->top_capacity_utilization.emplace();
  for (const auto& [share, usage] : top(by_share)) {
    batch::QuotaShareCapacityUtilization each;
    each.quota_share_name = share;
    each.capacity_usage = by_unit<batch::QuotaShareCapacityUsage>(usage);
    out.quota_share_utilization->top_capacity_utilization->push_back(std::move(each));
  }
  return out;
}

std::string arn_in_queue(const Job& job) {
  return job.spec.contract == domain::Contract::training ? service_job_arn(job)
                                                         : control::job_arn(job);
}

Outcome<batch::GetJobQueueSnapshotResponse> snapshot(
    const Services& services, const Context& context,
    const batch::GetJobQueueSnapshotRequest& request) {
  const JobKey key = batch_resource_key(context, *request.job_queue, catalog::kQueueArn);
  const auto stored = services.control.batch_catalog();
  const catalog::JobQueue* queue = stored->queue(key);
  if (!queue) return no_such_resource("job queue", key.name);
  const auto queue_heads = services.control.queue_heads();
  const auto jobs = services.control.live_jobs();
  // A job may have left the queue since the last tick of the scheduler.
  const auto still_there = [&](domain::JobNumber number) -> const Job* {
    const Job* job = domain::find_job(jobs, number);
    return job && job->state == domain::JobState::waiting ? job : nullptr;
  };
  batch::GetJobQueueSnapshotResponse out;
  out.front_of_queue.emplace();
  out.front_of_queue->jobs.emplace();
  out.front_of_queue->last_updated_at = to_milliseconds(queue_heads->seen + context.clock_offset);
  if (const auto queue_head = queue_heads->queues.find(key);
      queue_head != queue_heads->queues.end()) {
    for (const reconcile::HeadJob& each : queue_head->second.jobs) {
      const Job* job = still_there(each.job);
      if (!job) continue;
      batch::FrontOfQueueJobSummary summary;
      summary.job_arn = arn_in_queue(*job);
      summary.earliest_time_at_position = to_milliseconds(each.since + context.clock_offset);
      out.front_of_queue->jobs->push_back(std::move(summary));
    }
    if (!queue_head->second.of_shares.empty()) {
      out.front_of_quota_shares.emplace();
      out.front_of_quota_shares->quota_shares.emplace();
      out.front_of_quota_shares->last_updated_at =
          to_milliseconds(queue_heads->seen + context.clock_offset);
    }
    for (const auto& [share, each] : queue_head->second.of_shares) {
      const Job* job = still_there(each.job);
      if (!job) continue;
      batch::FrontOfQuotaShareJobSummary summary;
      summary.job_arn = arn_in_queue(*job);
      summary.earliest_time_at_position = to_milliseconds(each.since + context.clock_offset);
      (*out.front_of_quota_shares->quota_shares)[share] = {std::move(summary)};
    }
  }
  out.queue_utilization = utilization_of(*stored, *queue, jobs, context.now);
  return out;
}

}  // namespace

void add_snapshot(OperationTable& table, const Settings&, const Services& services) {
  table.add<batch::GetJobQueueSnapshot>(
      [&](const Context& context, const batch::GetJobQueueSnapshotRequest& request) {
        return snapshot(services, context, request);
      });
}

}  // namespace trainyard::api::batch_api
