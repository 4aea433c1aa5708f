#include "reconcile/reconcile.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <set>

#include "batch/catalog.hpp"
#include "contract/plain_container.hpp"
#include "domain/job_check.hpp"
#include "reconcile/array_children.hpp"
#include "reconcile/guarded_text.hpp"
#include "reconcile/host_reuse.hpp"
#include "reconcile/schedule_view.hpp"
#include "reconcile/shown_agents.hpp"
#include "schedule/preferences.hpp"

namespace trainyard::reconcile {
namespace {

using namespace batch;
using namespace domain;

bool try_again(const Error& error) {
  return error.kind == Kind::exhausted || error.kind == Kind::unavailable;
}

std::vector<HostIndex> hosts_where(const Attempt& attempt, auto&& condition) {
  std::vector<HostIndex> hosts;
  for (HostIndex index = 0; index < attempt.hosts.size(); ++index)
    if (condition(index)) hosts.push_back(index);
  return hosts;
}

class Reconciler {
 public:
  Reconciler(const Snapshot& snapshot, const schedule::Policy& policy, const Timeout& timeout,
             const Spot& spot, Instant now, const Planner& planner)
      : snapshot_(snapshot),
        policy_(policy),
        timeout_(timeout),
        spot_(spot),
        now_(now),
        planner_(planner) {
    for (const launch::Agent& agent : snapshot_.agents) shown_jobs_.insert(agent.attempt.job);
    open_children_ = count_open_children(snapshot_.jobs);
  }

  Decision decide() {
    review_all();
    for (SpotInterruption& chosen : spot_interruptions(snapshot_.jobs, spot_, now_))
      decision_.commands.push_back(Interrupt{chosen.attempt.job, chosen.attempt.number, chosen.host,
                                             timeout_.spot_notice, std::move(chosen.reason)});
    if (snapshot_.catalog)
      for (Overdue& overdue : overdue_at_heads(snapshot_.queue_heads, *snapshot_.catalog, now_))
        if (state_of(overdue.job) == JobState::waiting)
          decision_.commands.push_back(
              CancelJob{overdue.job, overdue.how, std::move(overdue.reason)});
    remove_orphans();
    place();
    return std::move(decision_);
  }

  PlannedCluster planned(JobNumber number, const MayUseQueue& may_use) {
    review_all();
    decision_.waits.clear();
    PlannedCluster out;
    ScheduleView view = empty_view(LimitNames::guarded);
    // Variants come first, so that the names of the job's limits are not guarded.
    if (const Job* job = job_of(number); job && job->state == JobState::waiting)
      guard(*job, [&] { out.variants = view.variants(*job, may_use); });
    out.cluster = cluster_of(view);
    for (const schedule::Wait& wait : decision_.waits)
      if (wait.job == number) out.not_planned = wait.reason.str();
    return out;
  }

 private:
  void review_all() {
    find_idle_hosts();
    for (const auto& job : snapshot_.jobs) guard(*job, [&] { review(*job); });
  }

  void review(const Job& job) {
    if (job.state == JobState::waiting) {
      if (const auto limits = check_limits(job.spec); !limits)
        return fail(job, limits.error().message);
    }
    if (job.attempt()) supervise(job, *job.attempt());
    check_time_limits(job);
    if (job.spec.queue) review_batch_job(job);
    if (job.keeps_hosts()) keep_hosts(job);
  }

  // Calls `body`. An exception that the job's data causes fails the job.
  void guard(const Job& job, auto&& body) {
    try {
      body();
    } catch (const std::exception& fault) {
      fail(job, std::string("the job cannot be planned: ") + fault.what());
    }
  }

  void fail(const Job& job, std::string reason) {
    cancelled_.insert(job.number);
    if (!job.finished())
      decision_.commands.push_back(Fail{job.number, std::move(reason)});
    else if (job.attempt())
      remove({job.number, job.attempt()->number});
  }

  // Finds the hosts of ended jobs whose agents wait for another job.
  void find_idle_hosts() {
    for (const launch::Agent& agent : snapshot_.agents) {
      if (snapshot_.reuse_queues.empty() && !agent.idle) continue;
      const Job* job = agent.alive ? job_of(agent.attempt.job) : nullptr;
      const Attempt* attempt = job ? job->attempt() : nullptr;
      if (attempt && attempt->number == agent.attempt.number && attempt->token == agent.token &&
          attempt->state == AttemptState::ended) {
        if (may_reuse(*job, snapshot_.reuse_queues) &&
            attempt->hosts.front().state == HostState::finished)
          idle_.emplace(job->number, job);
        if (agent.idle || idle_.contains(job->number)) idle_jobs_.insert(job->number);
      }
    }
  }

  // Takes an idle host that the job may reuse; nullopt if there is none.
  std::optional<AttemptId> idle_for(const Job& job, const Attempt& attempt) {
    if (idle_.empty() || !may_reuse(job, snapshot_.reuse_queues)) return {};
    for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
      const Attempt& previous = *idle->second->attempt();
      const Share &has = previous.hosts.front().share, &wants = attempt.hosts.front().share;
      if (previous.hosts.front().machine != attempt.hosts.front().machine ||
          has.cpus != wants.cpus || has.memory_bytes != wants.memory_bytes ||
          has.gpus != wants.gpus || !may_follow(*idle->second, job))
        continue;
      const AttemptId found{idle->first, previous.number};
      idle_.erase(idle);
      return found;
    }
    return {};
  }

  void supervise(const Job& job, const Attempt& attempt) {
    const AttemptId id{job.number, attempt.number};
    const Shown shown = shown_of(attempt, id, snapshot_.agents,
                                 job.control_time(attempt.started) <= snapshot_.server_began);
    if (shown.foreign) return remove(id);  // agents with another token run for this attempt
    if (attempt.state == AttemptState::ended) {
      if (shown.any && (!shown.any_alive || is_unstarted(attempt, shown) ||
                        job.own_time(now_) >= *attempt.ended + timeout_.leave))
        remove(id);
      return;
    }
    // Hosts that were not started: they have not reported, and the launcher does not list them. If
    // another host has reported and the launcher lists none, the whole gang was lost.
    const bool lost = !shown.any && std::ranges::any_of(attempt.hosts, &Host::facts_applied);
    const auto missing = hosts_where(attempt, [&](HostIndex host) {
      return attempt.hosts[host].state == HostState::placed &&
             attempt.hosts[host].facts_applied == 0 && !shown.listed[host] && !lost;
    });
    const auto gone = hosts_where(attempt, [&](HostIndex host) {
      return !is_final(attempt.hosts[host].state) && !shown.alive[host] &&
             std::ranges::find(missing, host) == missing.end();
    });
    if (job.state == JobState::active && !attempt.interrupted && !attempt.first_failed)
      interrupt_if_preempted(attempt, id, shown);
    if (!gone.empty()) {
      lose(id, gone, Fault::lost,
           "lost the host's agent " + place_of(attempt, gone.front(), shown));
    } else if (!missing.empty()) {
      start(job, attempt, id, missing);
    } else if (const auto* note = note_of_pending(attempt, shown)) {
      if (job.state == JobState::stopping || attempt.first_failed || attempt.interrupted)
        lose(id, hosts_where(attempt, [](HostIndex) { return true; }), Fault::internal,
             "stopped before it was started");
      else
        decision_.waits.push_back({job.number, *note});
    } else if (overdue(job, attempt)) {
      lose(id,
           hosts_where(attempt,
                       [&](HostIndex host) { return !is_final(attempt.hosts[host].state); }),
           Fault::internal, "the host did not end in the time that it was given to stop");
    }
  }

  // Interrupts a job of which the launcher's system preempts a host, so that it gets another
  // attempt. Its other hosts stop meanwhile.
  void interrupt_if_preempted(const Attempt& attempt, AttemptId id, const Shown& shown) {
    if (const auto host = preempted_host(attempt, shown))
      decision_.commands.push_back(Interrupt{id.job, id.number, *host, timeout_.spot_notice,
                                             "preempted " + place_of(attempt, *host, shown), true});
  }

  void check_time_limits(const Job& job) {
    if (job.finished() || job.stop_cause != StopCause::none) return;
    // The limits do not apply once the main host has ended, however long the others take to stop.
    if (const auto main = job.spec.main_host();
        main && job.state == JobState::active &&
        job.attempt()->hosts[*main].state >= HostState::draining)
      return;
    const Instant now = job.own_time(now_);
    const auto since_creation = now - job.created;
    if (job.spec.max_wait_seconds &&
        since_creation >= std::chrono::seconds(*job.spec.max_wait_seconds))
      decision_.commands.push_back(Expire{job.number, StopCause::max_wait, timeout_.stop_grace});
    else if (job.ran_of_max(now) >= std::chrono::seconds(job.spec.max_runtime_seconds))
      decision_.commands.push_back(Expire{job.number, StopCause::max_runtime, timeout_.stop_grace});
    else if (job.spec.max_pending_seconds && job.attempts.empty() &&
             since_creation >= std::chrono::seconds(*job.spec.max_pending_seconds))
      decision_.commands.push_back(Expire{job.number, StopCause::max_pending});
  }

  // Checks a Batch job's dependencies, queue and array.
  void review_batch_job(const Job& job) {
    if (job.finished()) return;
    if (job.is_array()) review_array(job);
    const Job* array = job.parent != 0 ? job_of(job.parent) : nullptr;
    const bool with_array =
        array && array->state == JobState::stopping &&
        (job.state == JobState::waiting || array->cancellation != Cancellation::cancelled);
    const bool sooner = with_array && array->stop_grace == 0ms && job.stop_grace != 0ms;
    if ((job.state == JobState::stopping && !sooner) || !snapshot_.catalog) return;
    if (!snapshot_.catalog->queue({job.key.region, job.spec.queue->name}))
      return cancel(job, Cancellation::queue_deleted,
                    "the job queue " + job.spec.queue->name + " was deleted");
    if (with_array)
      return cancel(
          job,
          array->cancellation == Cancellation::no ? Cancellation::terminated : array->cancellation,
          array->cancellation_reason, array->stop_grace);
    for (const JobNumber awaited : job.awaits) {
      const auto state = state_of(awaited);
      if (!state || !is_final(*state)) continue;
      if (*state != JobState::completed)
        return cancel(job, Cancellation::dependency_failed, "Dependent Job failed");
      decision_.commands.push_back(StopAwaiting{job.number, awaited});
    }
  }

  void cancel(const Job& job, Cancellation how, std::string reason,
              std::optional<Duration> grace = {}) {
    decision_.commands.push_back(
        CancelJob{job.number, how, std::move(reason), grace.value_or(timeout_.stop_grace)});
    if (job.state == JobState::waiting) cancelled_.insert(job.number);
  }

  // Creates further children of an array, or finishes it. Requires: the array has not ended.
  void review_array(const Job& array) {
    if (const auto over = snapshot_.child_failed.find(array.number);
        over != snapshot_.child_failed.end())
      decision_.commands.push_back(FinishArray{array.number, over->second});
    else if (const uint32_t count = children_to_make(array); count > 0)
      decision_.commands.push_back(MakeChildren{array.number, count});
  }

  uint32_t children_to_make(const Job& array) const {
    if (!array.awaits.empty() ||
        (array.state != JobState::waiting && array.state != JobState::active))
      return 0;
    uint32_t end = array.spec.array.size;
    // A child is created after the child of the other array that it depends on.
    for (const JobNumber number : array.awaits_alike)
      if (const Job* other = job_of(number);
          other && (other->state == JobState::waiting || other->state == JobState::active))
        end = std::min(end, other->children_made);
    const auto found = open_children_.find(array.number);
    const OpenChildren open = found == open_children_.end() ? OpenChildren{} : found->second;
    if (end <= array.children_made || open.waiting >= kChildrenWaitingMax ||
        open.dependent >= kChildrenAwaitingMax)
      return 0;
    return std::min({end - array.children_made, kChildrenWaitingMax - open.waiting,
                     kChildrenAwaitingMax - open.dependent});
  }

  const Job* job_of(JobNumber number) const { return domain::find_job(snapshot_.jobs, number); }

  // Returns a job's state, with the cancellations of this decision, so that a long chain of
  // dependent jobs ends at once.
  std::optional<JobState> state_of(JobNumber number) const {
    if (cancelled_.contains(number)) return JobState::stopped;
    if (const Job* job = job_of(number)) return job->state;
    const auto ended = snapshot_.ended.find(number);
    return ended == snapshot_.ended.end() ? std::nullopt : std::optional(ended->second);
  }

  // Keeps the hosts of a finished job until their time has ended, a machine no longer exists, or
  // another job has taken them over.
  void keep_hosts(const Job& job) {
    const auto taker = std::ranges::find_if(snapshot_.jobs, [&](const auto& other) {
      return std::ranges::any_of(
          other->attempts, [&](const Attempt& attempt) { return attempt.warm_pool == job.number; });
    });
    const bool machines_there = std::ranges::all_of(job.attempt()->hosts, [&](const Host& host) {
      return std::ranges::find(snapshot_.machines, host.machine, &launch::Machine::name) !=
             snapshot_.machines.end();
    });
    if (taker != snapshot_.jobs.end())
      decision_.commands.push_back(EndPool{job.number, (*taker)->key.name});
    else if (job.own_time(now_) >= job.warm_pool->until() || !machines_there)
      decision_.commands.push_back(EndPool{job.number, ""});
    else
      kept_.push_back(&job);
  }

  // Starts missing hosts of an attempt. This also completes a gang that an earlier server began to
  // start.
  void start(const Job& job, const Attempt& attempt, AttemptId id,
             const std::vector<HostIndex>& missing) {
    const auto failure = snapshot_.launch_failures.find(id);
    if (job.state == JobState::stopping || attempt.first_failed || attempt.interrupted) {
      lose(id, missing, Fault::internal, "stopped before it was started");
    } else if (failure == snapshot_.launch_failures.end()) {
      decision_.ensure.push_back(id);
      if (const auto previous = idle_for(job, attempt)) decision_.after.emplace(id, *previous);
    } else if (!try_again(failure->second) ||
               job.own_time(now_) - attempt.started >= timeout_.launch) {
      const bool clients =
          failure->second.kind == Kind::invalid || failure->second.kind == Kind::not_found;
      const std::string& why = failure->second.message;
      const bool shown_as_is = failure->second.is(contract::StartFault::cannot_pull);
      lose(id, missing, clients ? Fault::client : Fault::internal,
           shown_as_is ? why : "the hosts could not be started: " + why);
    } else {
      decision_.ensure.push_back(id);
    }
  }

  // Returns true if the attempt was stopped, and all time limits for its end have passed.
  bool overdue(const Job& job, const Attempt& attempt) const {
    std::optional<Instant> end_requested = job.stop_requested;
    if (attempt.first_failed)
      end_requested = std::max(end_requested.value_or(Instant{}),
                               attempt.hosts[*attempt.first_failed].state_since);
    if (attempt.interrupted)
      end_requested = std::max(end_requested.value_or(Instant{}), *attempt.interrupted);
    // The other hosts are stopped when the main host has ended.
    if (const auto main = job.spec.main_host(); main && is_final(attempt.hosts[*main].state))
      end_requested = std::max(end_requested.value_or(Instant{}), attempt.hosts[*main].state_since);
    return end_requested &&
           job.own_time(now_) >= *end_requested + std::max(timeout_.stop_grace, attempt.notice) +
                                     timeout_.stop_upload;
  }

  // Removes agents of attempts that are not the current one of any job.
  void remove_orphans() {
    for (const launch::Agent& agent : snapshot_.agents) {
      if (!agent.unknown_on.empty()) continue;
      const Job* job = job_of(agent.attempt.job);
      const bool known = job && job->attempt() && job->attempt()->number == agent.attempt.number;
      if (!known) remove(agent.attempt);
    }
  }

  ScheduleView empty_view(LimitNames limit_names = LimitNames::plain) const {
    return ScheduleView(
        snapshot_.machines, snapshot_.catalog.get(), snapshot_.usages, snapshot_.quotas,
        {timeout_.launch, timeout_.stop_grace, timeout_.stop_upload}, now_, limit_names);
  }

  schedule::Snapshot cluster_of(ScheduleView& view) {
    for (const auto& job : snapshot_.jobs) guard(*job, [&] { show(*job, view); });
    for (const Job* job : kept_)
      if (!holds(*job)) view.keep(*job);  // after its attempt is removed
    schedule::Snapshot cluster = view.take();
    cluster.clock_offset = snapshot_.clock_offset;
    return cluster;
  }

  void place() {
    ScheduleView view = empty_view();
    schedule::Snapshot cluster = cluster_of(view);
    schedule::Plan plan = plan_of(cluster);
    consider_growth(cluster, plan);
    grow_and_shrink(cluster, plan);
    for (schedule::Start& start : plan.starts) {
      // A job with a single preference has no alternatives in the plan.
      if (const Job* job = job_of(start.job);
          job && !job->spec.preferences.empty() && !job->selected)
        start.preference = start.preference.value_or(0);
      const bool spot = on_spot(start);
      decision_.commands.push_back(StartAttempt{std::move(start), {}, spot});
    }
    for (schedule::Preemption& preemption : plan.preemptions)
      if (const Job* job = job_of(preemption.job); job && job->attempt())
        decision_.commands.push_back(Interrupt{job->number,
                                               job->attempt()->number,
                                               {},
                                               timeout_.spot_notice,
                                               reveal_to_all(preemption.reason),
                                               true});
    std::ranges::move(plan.waits, std::back_inserter(decision_.waits));
  }

  void show(const Job& job, ScheduleView& view) {
    if (holds(job)) view.hold(job);
    if (job.state != JobState::waiting || cancelled_.contains(job.number)) return;
    if (job.is_array() && job.awaits.empty()) return explain_missing_children(job);
    if (const auto waits = add_to_queue(job, view); !waits)
      decision_.waits.push_back({job.number, waits.error().message});
  }

  // Adds the pending reason of an array whose children depend on another array's (N_TO_N). Other
  // arrays create children in this iteration.
  void explain_missing_children(const Job& array) {
    for (const JobNumber number : array.awaits_alike)
      if (const Job* other = job_of(number);
          other && (other->state == JobState::waiting || other->state == JobState::active) &&
          other->children_made <= array.children_made)
        return decision_.waits.push_back(
            {array.number,
             "waits for the children of " + job_title(*other) + " that its own depend on"});
  }

  // Plans the cluster. If the planner throws, it is called with each waiting job alone; jobs with
  // which it throws again fail, and the others are planned without them.
  schedule::Plan plan_of(const schedule::Snapshot& cluster) {
    try {
      return planner_(cluster, policy_, now_);
    } catch (const std::exception& fault) {
      return plan_without_culprits(cluster, fault.what());
    }
  }

  schedule::Plan plan_without_culprits(const schedule::Snapshot& cluster,
                                       const std::string& fault) {
    schedule::Snapshot others = cluster;
    others.waiting.clear();
    for (const schedule::WaitingJob& waiting : cluster.waiting) {
      schedule::Snapshot alone = cluster;
      alone.waiting = {waiting};
      try {
        planner_(alone, policy_, now_);
        others.waiting.push_back(waiting);
      } catch (const std::exception& own) {
        if (const Job* job = job_of(waiting.job))
          fail(*job, std::string("the job cannot be planned: ") + own.what());
      }
    }
    try {
      return planner_(others, policy_, now_);
    } catch (const std::exception&) {
      schedule::Plan none;
      for (const schedule::WaitingJob& waiting : others.waiting)
        none.waits.push_back({waiting.job, planning_failed(fault)});
      return none;
    }
  }

  bool on_spot(const schedule::Start& start) const {
    const Job* job = start.environment.empty() ? nullptr : job_of(start.job);
    const ComputeEnvironment* environment =
        job ? snapshot_.catalog->environment({job->key.region, start.environment}) : nullptr;
    return environment && environment->spot;
  }

  // Sets the cause of a wait to `capacity` if the job fits no existing machine, but one that can be
  // added; it then waits with the first of its preferences that such machines hold. Otherwise its
  // reason tells why machines cannot be added.
  void consider_growth(schedule::Snapshot& cluster, schedule::Plan& plan) const {
    if (snapshot_.kinds.empty()) return;
    const auto kinds = kinds_of(snapshot_.kinds, snapshot_.machines, snapshot_.catalog.get());
    for (schedule::Wait& wait : plan.waits) {
      if (wait.cause != schedule::WaitCause::machine) continue;
      const auto job =
          std::ranges::lower_bound(cluster.waiting, wait.job, {}, &schedule::WaitingJob::job);
      for (uint32_t preference = 0; preference <= job->alternatives.size(); ++preference) {
        schedule::WaitingJob with = schedule::with_preference(*job, preference);
        if (!schedule::could_be_made(with, kinds)) continue;
        wait.cause = schedule::WaitCause::capacity;
        wait.reason = reason_of_growth(snapshot_.kinds);
        *job = std::move(with);
        break;
      }
      if (wait.cause == schedule::WaitCause::machine)
        wait.reason = wait.reason.str() + failed_growth(snapshot_.kinds);
    }
  }

  // Requests total numbers, so that the request may be repeated.
  void grow_and_shrink(const schedule::Snapshot& cluster, const schedule::Plan& plan) {
    if (snapshot_.kinds.empty()) return;
    const auto kinds = kinds_of(snapshot_.kinds, snapshot_.machines, snapshot_.catalog.get());
    decision_.idle_since =
        idle_since(snapshot_.idle_since, snapshot_.machines, cluster, plan, now_);
    std::vector<schedule::IdleMachine> idle;
    for (const launch::Machine& machine : snapshot_.machines)
      if (const auto since = decision_.idle_since.find(machine.name);
          since != decision_.idle_since.end())
        idle.push_back({machine.name, machine.kind, since->second});
    const schedule::Growth growth =
        schedule::plan_growth(cluster, plan, kinds, idle, timeout_.growth, now_);
    for (const schedule::Growth::More& more : growth.grow) {
      const auto kind = std::ranges::find(kinds, more.kind, &schedule::MachineKind::name);
      if (kind != kinds.end() && more.count > 0)
        decision_.grow[more.kind] = kind->machines + kind->coming + more.count;
    }
    decision_.shrink = growth.shrink;
  }

  // Returns true if the job holds machines: an ended attempt does until it is removed, an idle host
  // does not.
  bool holds(const Job& job) const {
    if (idle_jobs_.contains(job.number)) return false;
    return job.attempt() &&
           (job.attempt()->state != AttemptState::ended || shown_jobs_.contains(job.number));
  }

  // Errors: invalid, with the reason why the job cannot be placed now: its instance type is unknown
  // (CreateTrainingJob rejects such types, but an earlier version may have known more), hosts of
  // its last attempt still exist, or the pause between attempts has not passed.
  Result<void> add_to_queue(const Job& job, ScheduleView& view) const {
    if (holds(job)) return invalid("waits until the hosts of its previous attempt have ended");
    if (job.attempt() && job.own_time(now_) < *job.attempt()->ended + pause_after(job))
      return invalid("is retried soon: " + job.attempt()->interruption);
    if (!job.awaits.empty())
      return invalid(
          "waits for " + std::to_string(job.awaits.size()) +
          (job.awaits.size() == 1 ? " job that it depends on" : " jobs that it depends on"));
    std::vector<JobNumber> pools;
    for (const Job* kept : kept_)
      if (kept->account == job.account && kept->key.region == job.key.region && !job.spec.spot &&
          same_hosts(kept->spec, job.spec))
        pools.push_back(kept->number);
    return view.wait(job, std::move(pools));
  }

  Duration pause_after(const Job& job) const {
    Duration pause{};
    for (auto attempt = job.attempts.rbegin(); attempt != job.attempts.rend(); ++attempt) {
      if (attempt->training_started || attempt->interrupted) break;
      pause = std::min(pause == Duration{} ? timeout_.retry_pause : 2 * pause,
                       timeout_.retry_pause_max);
    }
    return pause;
  }

  void lose(AttemptId id, std::vector<HostIndex> hosts, Fault fault, std::string reason) {
    decision_.commands.push_back(Lose{id, std::move(hosts), fault, std::move(reason)});
  }

  void remove(AttemptId id) {
    if (std::ranges::find(decision_.remove, id) == decision_.remove.end())
      decision_.remove.push_back(id);
  }

  const Snapshot& snapshot_;
  const schedule::Policy& policy_;
  const Timeout& timeout_;
  const Spot& spot_;
  const Instant now_;
  const Planner& planner_;
  std::set<JobNumber> shown_jobs_;                   // jobs of which the launcher lists agents
  std::map<JobNumber, OpenChildren> open_children_;  // by array
  std::set<JobNumber> cancelled_;         // waiting or invalid jobs that this decision ends
  std::map<JobNumber, const Job*> idle_;  // jobs with an idle host that can still be taken
  std::set<JobNumber> idle_jobs_;         // all jobs with an idle host
  std::vector<const Job*> kept_;          // finished jobs whose hosts may be taken over
  Decision decision_;
};

}  // namespace

Decision decide(const Snapshot& snapshot, const schedule::Policy& policy, const Timeout& timeout,
                const Spot& spot, Instant now, const Planner& planner) {
  return Reconciler(snapshot, policy, timeout, spot, now, planner).decide();
}

PlannedCluster planned_cluster(const Snapshot& snapshot, const schedule::Policy& policy,
                               const Timeout& timeout, const Spot& spot, Instant now, JobNumber job,
                               const MayUseQueue& may_use) {
  const Planner none;
  return Reconciler(snapshot, policy, timeout, spot, now, none).planned(job, may_use);
}

}  // namespace trainyard::reconcile
