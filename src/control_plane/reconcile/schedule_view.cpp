#include "reconcile/schedule_view.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "reconcile/guarded_text.hpp"
#include "reconcile/state.hpp"

namespace trainyard::reconcile {
namespace {

using namespace batch;
using namespace domain;

std::map<std::string, int64_t> instances_of(const std::vector<InstanceGroup>& groups) {
  std::map<std::string, int64_t> count;
  for (const InstanceGroup& group : groups) count[group.instance_type] += group.count;
  return count;
}

int64_t in_unit(const std::map<std::string, int64_t>& instances, const std::string& unit) {
  if (unit != kInstancesUnit) {
    const auto found = instances.find(unit);
    return found == instances.end() ? 0 : found->second;
  }
  int64_t all = 0;
  for (const auto& [type, count] : instances) all += count;
  return all;
}

// Returns the unit as users see it: "instances", or an instance type.
std::string unit_name(std::string_view unit) {
  return unit == kInstancesUnit ? "instances" : std::string(unit);
}

// Returns the demands by type, and in total.
std::vector<schedule::Demand> demands_of(const std::map<std::string, int64_t>& instances) {
  std::vector<schedule::Demand> demands;
  for (const auto& [type, count] : instances) demands.push_back({type, double(count)});
  demands.push_back(
      {unit_name(kInstancesUnit), double(in_unit(instances, std::string(kInstancesUnit)))});
  return demands;
}

schedule::QuotaShare quota_share_of(const QuotaShare& share) {
  schedule::QuotaShare out;
  out.name = share.name();
  for (const CapacityLimit& limit : share.limits)
    out.quotas.push_back({unit_name(limit.unit), double(limit.capacity)});
  out.lends = share.strategy != QuotaShare::Strategy::reserve;
  out.borrows = share.strategy == QuotaShare::Strategy::lend_and_borrow;
  if (share.borrow_percent) out.borrow_max = double(*share.borrow_percent) / 100;
  out.preempts_within = share.preempts_within;
  return out;
}

std::vector<schedule::Placement> placements_of(const Attempt& attempt) {
  std::vector<schedule::Placement> placements;
  placements.reserve(attempt.hosts.size());
  for (const Host& host : attempt.hosts) placements.push_back({host.machine, host.share});
  return placements;
}

constexpr std::string_view kAnotherJob = "another job";

// Returns true if the attempt is ending.
bool is_leaving(const Job& job, const Attempt& attempt) {
  return job.state != JobState::active || job.stop_cause != StopCause::none ||
         attempt.interrupted || attempt.first_failed || attempt.state == AttemptState::draining;
}

std::string guarded_title(const Job& job) { return guard(job.number, job_title(job), kAnotherJob); }

}  // namespace

ScheduleView::ScheduleView(const std::vector<launch::Machine>& machines, const Catalog* catalog,
                           const Usages& usages, const std::vector<InstanceQuota>& quotas,
                           Surroundings surroundings, Instant now, LimitNames limit_names)
    : catalog_(catalog),
      usages_(usages),
      quotas_(quotas),
      surroundings_(surroundings),
      now_(now),
      limit_names_(limit_names) {
  for (const launch::Machine& machine : machines)
    snapshot_.machines.push_back(
        {machine.name, {machine.cpus, machine.memory_bytes, machine.gpus}, machine.topology});
  schedule::Queue others;
  others.name = "training jobs";
  others.priority = schedule::kPriorityOfOthers;
  others.fair.emplace();
  others.fair->decay = kDecayOfOthers;
  snapshot_.queues.push_back(std::move(others));
  shares_.emplace_back();
}

size_t ScheduleView::add_limit(std::string name, double total, std::string remedy,
                               bool environments) {
  if (subject_ && limit_names_ == LimitNames::guarded)
    name = guard(subject_->number, name, "another limit");
  snapshot_.limits.push_back({std::move(name), total, 0, std::move(remedy), environments});
  return snapshot_.limits.size() - 1;
}

std::optional<size_t> ScheduleView::compute_environment(const JobKey& key) {
  if (const auto found = compute_environments_.find(key); found != compute_environments_.end())
    return found->second;
  const batch::ComputeEnvironment* environment = catalog_ ? catalog_->environment(key) : nullptr;
  if (!environment) return std::nullopt;
  Environment view{key.name, {}, {}, environment->instance_types};
  if (environment->cpus_max > 0)
    view.cpus = add_limit("vCPU of compute environment " + key.name, environment->cpus_max,
                          "raise its maxvCpus", true);
  environments_.push_back(std::move(view));
  compute_environments_.emplace(key, environments_.size() - 1);
  return environments_.size() - 1;
}

std::optional<size_t> ScheduleView::service_environment(const JobKey& key) {
  if (const auto found = service_environments_.find(key); found != service_environments_.end())
    return found->second;
  const ServiceEnvironment* environment = catalog_ ? catalog_->service_environment(key) : nullptr;
  if (!environment) return std::nullopt;
  Environment view{key.name, {}, {}, {}};
  for (const CapacityLimit& limit : environment->limits) {
    view.units.emplace_back(limit.unit,
                            add_limit(unit_name(limit.unit) + " of service environment " + key.name,
                                      double(limit.capacity), "raise its maxCapacity", true));
  }
  environments_.push_back(std::move(view));
  service_environments_.emplace(key, environments_.size() - 1);
  return environments_.size() - 1;
}

std::optional<size_t> ScheduleView::consumable(const JobKey& key) {
  if (const auto found = consumables_.find(key); found != consumables_.end()) return found->second;
  const ConsumableResource* resource = catalog_ ? catalog_->resource(key) : nullptr;
  if (!resource) return std::nullopt;
  const size_t limit = add_limit("consumable resource " + key.name, double(resource->total),
                                 "raise its total quantity");
  consumables_.emplace(key, limit);
  return limit;
}

std::optional<size_t> ScheduleView::quota(const Job& job, const std::string& instance_type) {
  const auto [found, fresh] =
      quota_limits_.try_emplace({job.spec.principal, job.key.region, instance_type}, std::nullopt);
  if (!fresh) return found->second;
  const InstanceQuota* counts =
      quota_of(quotas_, job.spec.principal, job.key.region, instance_type);
  if (counts)
    found->second =
        add_limit(counts->name() + " by " + job.spec.principal + " in " + job.key.region,
                  double(counts->count), "raise its [[quota]] in the server's config");
  return found->second;
}

schedule::Queue ScheduleView::scheduler_queue(const JobQueue& queue,
                                              const std::vector<size_t>& environments) const {
  schedule::Queue scheduled;
  scheduled.name = "job queue " + queue.key.name;
  scheduled.priority = queue.priority;
  const SchedulingPolicy* policy = catalog_->policy_of(queue);
  if (!policy) return scheduled;
  if (policy->kind == SchedulingPolicy::Kind::quota_shares) {
    // Shares of one queue are adjacent: their names begin with the queue's.
    const std::string begins = quota_share_name(queue.key.name, "");
    for (auto share = catalog_->quota_shares.lower_bound({queue.key.region, begins});
         share != catalog_->quota_shares.end() && share->first.region == queue.key.region &&
         share->first.name.starts_with(begins);
         ++share)
      scheduled.quota_shares.push_back(quota_share_of(share->second));
    return scheduled;
  }
  scheduled.fair.emplace();
  scheduled.fair->decay = std::chrono::seconds(policy->decay());
  scheduled.fair->reservation = double(policy->reservation_percent) / 100;
  for (const size_t environment : environments)
    if (const auto cpus = environments_[environment].cpus)
      scheduled.fair->reserves.push_back(*cpus);
  return scheduled;
}

ScheduleView::QueueView* ScheduleView::queue_view_of(const Job& job) {
  const JobKey key{job.key.region, job.spec.queue->name};
  if (const auto found = queues_.find(key); found != queues_.end()) return &found->second;
  const JobQueue* queue = catalog_ ? catalog_->queue(key) : nullptr;
  if (!queue) return nullptr;
  QueueView view;
  view.queue = queue;
  for (const std::string& name : queue->environments) {
    const JobKey environment{key.region, name};
    const batch::ComputeEnvironment* compute =
        queue->service ? nullptr : catalog_->environment(environment);
    const ServiceEnvironment* service =
        queue->service ? catalog_->service_environment(environment) : nullptr;
    if ((compute && compute->enabled) || (service && service->enabled))
      view.environments.push_back(queue->service ? *service_environment(environment)
                                                 : *compute_environment(environment));
  }
  view.index = snapshot_.queues.size();
  snapshot_.queues.push_back(scheduler_queue(*queue, view.environments));
  shares_.emplace_back();
  return &queues_.emplace(key, std::move(view)).first->second;
}

// Sets the name of the job's share in the queue, and adds the share to the queue.
void ScheduleView::join_queue(const Job& job, size_t index, std::string& share) {
  if (snapshot_.queues[index].fair) {
    share = job.spec.queue ? job.spec.queue->share : job.spec.principal;
    shares_[index].try_emplace(share, 0);
  } else if (!snapshot_.queues[index].quota_shares.empty()) {
    share = job.spec.queue->quota_share;
  }
}

void ScheduleView::hold(const Job& job) {
  subject_ = &job;
  const Attempt& attempt = *job.attempt();
  const bool over = attempt.state == AttemptState::ended;
  schedule::Running running;
  running.name = guarded_title(job);
  running.hosts = placements_of(attempt);
  running.started = job.control_time(attempt.started);
  running.priority = job.priority();
  // An ended attempt holds its machines, and vCPU of its compute environment, until it is removed.
  if (job.spec.contract == Contract::plain && !attempt.environment.empty())
    if (const auto environment = compute_environment({job.key.region, attempt.environment}))
      if (const auto cpus = environments_[*environment].cpus)
        running.needs.push_back({*cpus, cpus_of(attempt), true, false});
  if (over) {
    snapshot_.running.push_back(std::move(running));
    return;
  }
  running.job = job.number;
  running.leaving = is_leaving(job, attempt);
  running.ends_by = ends_by(job);
  const Instances instances =
      job.spec.contract == Contract::plain ? Instances() : instances_of(job.spec.groups);
  need_quota(job, instances, running.needs);
  const QueueView* queue = job.spec.queue ? queue_view_of(job) : nullptr;
  if (job.spec.queue && job.spec.contract == Contract::training && !attempt.environment.empty())
    if (const auto environment = service_environment({job.key.region, attempt.environment}))
      need_instances(environments_[*environment], instances, running.needs);
  if (job.spec.queue)
    for (const Consumption& each : job.spec.queue->consumes) {
      const JobKey key{job.key.region, each.resource};
      const ConsumableResource* resource = catalog_ ? catalog_->resource(key) : nullptr;
      // Consumed resources were subtracted from the total when the attempt began.
      if (resource && resource->replenishable)
        running.needs.push_back({*consumable(key), double(each.quantity), false, false});
    }
  if (!job.spec.queue || queue) {
    running.queue = queue ? queue->index : kQueueOfOthers;
    join_queue(job, *running.queue, running.share);
    if (const auto& fair = snapshot_.queues[*running.queue].fair)
      shares_[*running.queue][running.share] +=
          used_since(cpus_of(attempt), running.started, fair->decay, now_);
    if (!snapshot_.queues[*running.queue].quota_shares.empty()) {
      running.demands = demands_of(instances);
      running.gives_way = !running.leaving;
    }
  }
  snapshot_.running.push_back(std::move(running));
}

void ScheduleView::keep(const Job& job) {
  const Attempt& attempt = *job.attempt();
  snapshot_.pools.push_back({job.number, "the warm pool of " + guarded_title(job),
                             placements_of(attempt), job.control_time(job.warm_pool->until())});
}

void ScheduleView::need_instances(const Environment& environment, const Instances& instances,
                                  std::vector<schedule::Need>& needs) const {
  for (const auto& [unit, limit] : environment.units)
    if (const int64_t amount = in_unit(instances, unit); amount > 0)
      needs.push_back({limit, double(amount), false, false});
}

// Adds the quotas of training jobs; containers are limited by their environments.
void ScheduleView::need_quota(const Job& job, const Instances& instances,
                              std::vector<schedule::Need>& needs) {
  if (quotas_.empty() || job.spec.contract == Contract::plain) return;
  for (const auto& [type, count] : instances)
    if (const auto limit = quota(job, type)) needs.push_back({*limit, double(count), false, false});
}

Result<void> ScheduleView::need_consumables(const Job& job, std::vector<schedule::Need>& needs) {
  for (const Consumption& each : job.spec.queue->consumes) {
    const JobKey key{job.key.region, each.resource};
    const auto limit = consumable(key);
    if (!limit)
      return invalid("waits for the consumable resource " + each.resource +
                     ", which no longer exists");
    needs.push_back(
        {*limit, double(each.quantity), false, !catalog_->resource(key)->replenishable});
  }
  return {};
}

Result<schedule::Choices> ScheduleView::choices_of(const Job& job, QueueView& queue,
                                                   const Instances& instances,
                                                   const std::vector<schedule::Need>& anywhere) {
  const bool as_others = instances.empty() && anywhere.empty();
  if (as_others && !queue.choices.empty()) return queue.choices;
  std::vector<schedule::Choice> choices;
  for (const size_t each : queue.environments) {
    const Environment& environment = environments_[each];
    schedule::Choice choice{environment.name, anywhere, environment.instance_types};
    if (environment.cpus) choice.needs.push_back({*environment.cpus, 0, true, false});
    need_instances(environment, instances, choice.needs);
    choices.push_back(std::move(choice));
  }
  if (!choices.empty()) {
    schedule::Choices found(std::move(choices));
    if (as_others) queue.choices = found;
    return found;
  }
  const std::string& name = queue.queue->key.name;
  if (job.spec.contract == Contract::training)
    return invalid("waits for a service environment: none of job queue " + name +
                   " exists and is enabled");
  return invalid("waits for a compute environment: none of job queue " + name + " is enabled");
}

Result<schedule::HostRequest> ScheduleView::host_request_of(const InstanceGroup& group) {
  if (group.share) return schedule::host_request_of(group);
  auto found = requests_.find(group.instance_type);
  if (found == requests_.end())
    found =
        requests_.emplace(group.instance_type, TRY(schedule::host_request_for(group.instance_type)))
            .first;
  schedule::HostRequest request = found->second;
  request.count = group.count;
  return request;
}

// Returns the needs of the job with these hosts.
Result<schedule::Alternative> ScheduleView::needs_of(const Job& job,
                                                     const std::vector<InstanceGroup>& groups,
                                                     QueueView* queue) {
  schedule::Alternative needs;
  needs.requests.reserve(groups.size());
  for (const InstanceGroup& group : groups) needs.requests.push_back(TRY(host_request_of(group)));
  const Instances instances =
      job.spec.contract == Contract::plain ? Instances() : instances_of(groups);
  std::vector<schedule::Need> anywhere;
  need_quota(job, instances, anywhere);
  if (queue) {
    TRY(need_consumables(job, anywhere));
    needs.choices = TRY(choices_of(job, *queue, instances, anywhere));
    if (!snapshot_.queues[queue->index].quota_shares.empty()) needs.demands = demands_of(instances);
  } else if (!anywhere.empty()) {
    needs.choices = {{"", std::move(anywhere)}};
  }
  return needs;
}

Result<schedule::WaitingJob> ScheduleView::waiting_of(const Job& job,
                                                      std::vector<JobNumber> pools) {
  subject_ = &job;
  schedule::WaitingJob waiting;
  waiting.job = job.number;
  waiting.name = guarded_title(job);
  waiting.pools = std::move(pools);
  waiting.priority = job.priority();
  if (const auto left = run_left(job))
    waiting.lasts_max = surroundings_.launch + *left + after_run(job);
  QueueView* queue = job.spec.queue ? queue_view_of(job) : nullptr;
  if (job.spec.queue && !queue) return invalid("its job queue no longer exists");
  waiting.queue = queue ? queue->index : kQueueOfOthers;
  schedule::Alternative needs = TRY(needs_of(job, job.spec.groups, queue));
  waiting.requests = std::move(needs.requests);
  waiting.choices = std::move(needs.choices);
  waiting.demands = std::move(needs.demands);
  if (!job.selected)
    for (size_t i = 1; i < job.spec.preferences.size(); ++i)
      waiting.alternatives.push_back(TRY(needs_of(job, {job.spec.preferences[i]}, queue)));
  join_queue(job, waiting.queue, waiting.share);
  return waiting;
}

Result<void> ScheduleView::wait(const Job& job, std::vector<JobNumber> pools) {
  schedule::WaitingJob waiting = TRY(waiting_of(job, std::move(pools)));
  CHECK(snapshot_.waiting.empty() || snapshot_.waiting.back().job < job.number,
        "jobs join their queue in the order of their numbers");
  snapshot_.waiting.push_back(std::move(waiting));
  return {};
}

// Returns the remaining run time of the current or next attempt; nullopt: unlimited.
std::optional<Duration> ScheduleView::run_left(const Job& job) const {
  const int64_t most = job.spec.max_runtime_seconds;
  if (most >= kRuntimeSecondsMax) return std::nullopt;
  // The limit applies to each attempt of a Batch job.
  const bool waits = job.state == JobState::waiting;
  const Duration ran = job.spec.queue && waits ? Duration{} : job.ran_of_max(job.own_time(now_));
  return std::max(Duration{}, std::chrono::seconds(most) - ran);
}

Duration ScheduleView::after_run(const Job& job) const {
  return surroundings_.stop +
         (job.spec.contract == Contract::plain ? Duration{} : surroundings_.upload);
}

// Returns the latest end; nullopt if it is unknown or in the past.
std::optional<Instant> ScheduleView::ends_by(const Job& job) const {
  const Attempt& attempt = *job.attempt();
  const Instant now = job.own_time(now_);
  std::optional<Instant> end;
  if (attempt.interrupted) {
    end = *attempt.interrupted + std::max(attempt.notice, surroundings_.stop) + after_run(job);
  } else if (job.stop_requested) {
    end = *job.stop_requested + after_run(job);
  } else if (const auto left = run_left(job)) {
    // The time begins when the job runs.
    const Instant begins =
        attempt.training_started ? now : std::max(now, attempt.started + surroundings_.launch);
    end = begins + *left + after_run(job);
  }
  if (!end || *end <= now) return std::nullopt;
  return job.control_time(*end);
}

// Sets the shares of the queue: those with jobs in it, and those with recent usage.
void ScheduleView::set_shares(size_t index, const JobKey& queue, const SchedulingPolicy* policy) {
  schedule::FairShare& fair = *snapshot_.queues[index].fair;
  std::map<std::string, double>& used = shares_[index];
  double ended_cpu_seconds = 0, ended_cpus = 0;
  for (auto past = usages_.lower_bound({queue, ""});
       past != usages_.end() && past->first.queue == queue; ++past)
    if (!is_negligible(past->second, fair.decay, now_)) {
      const Usage left = decayed(past->second, fair.decay, now_);
      used[past->first.share] += left.cpu_seconds;
      ended_cpu_seconds += left.cpu_seconds;
      ended_cpus += left.cpus;
    }
  if (ended_cpus > 0)
    fair.lasts = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(ended_cpu_seconds / ended_cpus));
  for (const auto& [share, cpu_seconds] : used)
    fair.shares.push_back({share, policy ? policy->weight_of(share) : 1, cpu_seconds});
}

schedule::Snapshot ScheduleView::take() {
  set_shares(kQueueOfOthers, {}, nullptr);
  for (const auto& [key, queue] : queues_)
    if (snapshot_.queues[queue.index].fair)
      set_shares(queue.index, key, catalog_->policy_of(*queue.queue));
  return std::move(snapshot_);
}

}  // namespace trainyard::reconcile
