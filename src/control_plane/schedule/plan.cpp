#include "schedule/plan.hpp"

#include <algorithm>
#include <map>

#include "base/check.hpp"
#include "base/text.hpp"
#include "domain/instance_type.hpp"
#include "schedule/backfill.hpp"
#include "schedule/kinds.hpp"
#include "schedule/limits.hpp"
#include "schedule/order.hpp"
#include "schedule/pending_reasons.hpp"
#include "schedule/preemption.hpp"
#include "schedule/preferences.hpp"
#include "schedule/quota.hpp"
#include "schedule/shortage.hpp"

namespace trainyard::schedule {
namespace {

std::vector<Share> totals(const std::vector<Machine>& machines) {
  std::vector<Share> shares;
  shares.reserve(machines.size());
  for (const Machine& machine : machines) shares.push_back(machine.total);
  return shares;
}

std::vector<Share> free_of(const std::vector<Machine>& machines, const Allocations& allocations) {
  std::vector<Share> free = totals(machines);
  for (const Allocation& allocation : allocations.all())
    for (const HeldHost& host : allocations.hosts(allocation))
      free[host.machine] = minus(free[host.machine], host.share);
  return free;
}

// Planner decides the jobs one after another. Free capacity only shrinks within a plan: once a job
// must wait, all later jobs of its kind that last as long must wait, too.
class Planner {
 public:
  Planner(const Snapshot& snapshot, const Policy& policy, Instant now)
      : snapshot_(snapshot),
        now_(now),
        allocations_(snapshot, now),
        topology_(snapshot.machines),
        capacity_(topology_, free_of(snapshot.machines, allocations_)),
        empty_(topology_, totals(snapshot.machines)),
        limits_(snapshot, allocations_),
        quotas_(snapshot, allocations_),
        kinds_(kinds_of(snapshot.waiting, snapshot.queues)),
        order_(snapshot, quotas_),
        found_(kinds_.kinds.size()),
        pool_taken_(snapshot.pools.size()) {
    for (const uint32_t first : kinds_.shapes)
      shapes_.push_back({gang_of(snapshot.waiting[first].requests, snapshot.machines, policy)});
  }

  Plan run() {
    plan_.waits.reserve(snapshot_.waiting.size());
    while (const auto next = order_.next()) {
      const WaitingJob& job = snapshot_.waiting[*next];
      const bool borrows = quotas_.has_quotas(job.queue) && quotas_.would_borrow(job);
      const size_t starts = plan_.starts.size();
      decide(*next);
      if (borrows && plan_.starts.size() == starts) quotas_.borrower_waits(job);
    }
    return std::move(plan_);
  }

 private:
  struct Shape {
    Gang gang;
    std::optional<bool> fits_empty = {};
    bool fits_now = true;  // false once placing it has failed
  };
  // The result for a kind. Once one of its jobs has to wait, its jobs that last as long or longer
  // wait, too.
  struct KindResult {
    bool may_fit = false;  // fits into empty machines and its limits
    std::optional<Duration> waits_from = {};
    SharedText reason_text = {};
    WaitCause cause = WaitCause::other;
  };
  // The reason for which a job would have to wait forever.
  struct NeverFits {
    std::string reason;
    WaitCause cause = WaitCause::other;
  };

  static constexpr Duration kAnyDuration = Duration::min();
  static constexpr Duration kForever = Duration::max();

  // Starts the job, or makes it wait with a reason. The first of these checks that applies decides:
  // it takes over a warm pool; a job of its kind waits already; it could never start; it could
  // delay the reservation, and fair share does not let it use what the reservation leaves; its
  // quota is used up; its limits are; no machines are free. The first job that waits only for
  // machines gets the reservation.
  void decide(uint32_t index) {
    const WaitingJob& job = snapshot_.waiting[index];
    const Duration lasts = job.lasts_max.value_or(kForever);
    if (!job.pools.empty() && take_pool(index)) return;
    KindResult& found = found_[kinds_.kind_of[index]];
    if (found.waits_from && lasts >= *found.waits_from)
      return wait(job, found.reason_text, found.cause);

    Shape& shape = shape_of(index);
    if (!found.may_fit) {
      if (auto never = why_never(job, shape))
        return wait(index, kAnyDuration, std::move(never->reason), never->cause);
      found.may_fit = true;
    }
    if (reservation_ && !in_time(ends(job)) && order_.ahead_of_first())
      return wait(job, behind_first(), WaitCause::capacity);
    if (auto reason = wait_for_quota(job, shape.gang))
      return wait(index, lasts, *std::move(reason));
    std::string reason;
    const Choice* choice = nullptr;
    if (!choose(job, shape.gang, choice, reason)) {
      const bool first = !job.choices.empty() && reserve_limits(job, shape.gang, reason);
      wait(index, lasts, reason);
      // Equal jobs after it wait behind it.
      if (first) found.reason_text = behind_reason(job.name, reason);
      return;
    }
    if (const auto layout = place(shape, ends(job)))
      return start(index, choice, shape.gang, *layout);
    if (reservation_) {
      found.waits_from = shape.fits_now ? lasts : kAnyDuration;
      found.reason_text = behind_first();
      found.cause = WaitCause::capacity;
      return wait(job, found.reason_text, found.cause);
    }
    order_.first_waits();
    reserve(job, shape.gang, choice);
  }

  Shape& shape_of(uint32_t index) { return shapes_[kinds_.kinds[kinds_.kind_of[index]].shape]; }
  std::optional<Instant> ends(const WaitingJob& job) const {
    return job.lasts_max ? std::optional(now_ + *job.lasts_max) : std::nullopt;
  }

  // Returns true if a job that ends at `ends` ends before the reservation begins. Requires:
  // reservation_.
  bool in_time(std::optional<Instant> ends) const {
    return reservation_->at && ends && *ends <= *reservation_->at;
  }

  // -- reasons

  // Returns why the job could not start even if all other jobs ended; nullopt if it could.
  std::optional<NeverFits> why_never(const WaitingJob& job, Shape& shape) {
    if (const auto obstacle = quotas_.obstacle(job, ends(job));
        obstacle && (obstacle->what == Quotas::Obstacle::What::too_small ||
                     obstacle->what == Quotas::Obstacle::What::no_share))
      return NeverFits{quota_reason(job.share, *obstacle)};
    std::string reasons;
    bool environments = true;
    for (const Choice& choice : job.choices) {
      std::string reason;
      bool its_own = false;
      for (const Limits::Obstacle& each :
           limits_.obstacles(choice, job.queue, shape.gang.cpus, ends(job))) {
        if (each.what != Limits::Obstacle::What::too_small) continue;
        reason += (reason.empty() ? "" : "; ") + limit_reason(limits_, each);
        its_own |= limits_.limit(each.limit).environments;
      }
      if (reason.empty()) {
        reasons.clear();
        break;
      }
      reasons += (reasons.empty() ? "" : "; ") + reason;
      environments &= its_own;
    }
    if (!reasons.empty())
      return NeverFits{reasons, environments ? WaitCause::environment : WaitCause::other};
    if (!shape.fits_empty) shape.fits_empty = empty_.place(shape.gang).has_value();
    if (*shape.fits_empty) return std::nullopt;
    return NeverFits{schedule::why_never(job.requests, shape.gang, snapshot_.machines, empty_),
                     WaitCause::machine};
  }

  // Returns the reason if quota rejects the job, nullopt if it may take its quota. If it rejects
  // the first job of the share, reserves quota for it, and preempts running jobs where that lets it
  // start.
  std::optional<std::string> wait_for_quota(const WaitingJob& job, const Gang& gang) {
    const auto obstacle = quotas_.obstacle(job, ends(job));
    if (!obstacle) return std::nullopt;
    const std::string own = quota_reason(job.share, *obstacle);
    nothing_reserved_yet_ = false;
    if (const std::string* first = quotas_.first_of(job))
      return behind_reason(*first, quota_reasons_[first]);
    // Reclaimed quota would go to the waiting borrower first.
    if (!quotas_.behind_borrower(job))
      if (auto reason = preempt_for(job, gang)) return reason;
    const auto at = quotas_.earliest(job, allocations_);
    quotas_.reserve(job, at);
    quota_reasons_[&job.name] = own;
    return own;
  }

  // Finds the first choice whose limits have capacity for the job. Returns false if none has, with
  // the reason in `reason`.
  bool choose(const WaitingJob& job, const Gang& gang, const Choice*& choice,
              std::string& reason) const {
    if (job.choices.empty()) return true;
    for (const Choice& each : job.choices) {
      const auto obstacles = limits_.obstacles(each, job.queue, gang.cpus, ends(job));
      if (obstacles.empty()) {
        choice = &each;
        return true;
      }
      for (const Limits::Obstacle& obstacle : obstacles)
        reason += (reason.empty() ? "" : "; ") + limit_reason(limits_, obstacle);
    }
    return false;
  }

  // -- reservations

  // Reserves full limits for the job. Returns true if it is the first to wait for one of them;
  // `reason` then says when that becomes free, if known.
  bool reserve_limits(const WaitingJob& job, const Gang& gang, std::string& reason) {
    bool first = false;
    std::optional<Instant> soonest;
    for (const Choice& choice : job.choices) {
      bool full = false, never = false;
      for (const Limits::Obstacle& each :
           limits_.obstacles(choice, job.queue, gang.cpus, ends(job))) {
        full |= each.what == Limits::Obstacle::What::full;
        never |= each.what == Limits::Obstacle::What::too_small;
      }
      if (!full || never) continue;
      std::vector<double> free_then;
      const auto at = limits_.earliest(choice, job.queue, gang.cpus, allocations_, free_then);
      if (!limits_.reserve(choice, job.queue, gang.cpus, job.name, reason, at, free_then)) continue;
      first = true;
      if (at && *at > now_) soonest = std::min(soonest.value_or(*at), *at);
    }
    nothing_reserved_yet_ = false;
    if (soonest) reason += free_by(*soonest);
    return first;
  }

  // Reserves machines, limits and quota for the first job that waits for machines.
  void reserve(const WaitingJob& job, const Gang& gang, const Choice* choice) {
    reservation_ = reserve_machines(gang, snapshot_.machines, topology_, capacity_, allocations_);
    reserved_job_ = job.name;
    reserved_job_reason_ =
        why_no_capacity(gang, snapshot_.machines, capacity_, empty_, allocations_);
    if (choice) {
      std::vector<double> free_now;
      for (const Need& need : choice->needs) free_now.push_back(limits_.free(need.limit));
      limits_.reserve(*choice, job.queue, gang.cpus, job.name, reserved_job_reason_,
                      reservation_->at, free_now);
    }
    quotas_.reserve(job, reservation_->at);
    quota_reasons_[&job.name] = reserved_job_reason_;
    std::vector<Share> both;
    both.reserve(snapshot_.machines.size());
    for (uint32_t m = 0; m < snapshot_.machines.size(); ++m)
      both.push_back(least_of(capacity_.free(m), reservation_->spare[m]));
    spare_capacity_.emplace(topology_, std::move(both));

    // An earlier job that waits for a limit or quota might start first and delay it.
    if (nothing_reserved_yet_ && reservation_->at && *reservation_->at > now_)
      plan_.waits.push_back(
          {job.job, reserved_job_reason_ + starts_by(*reservation_->at + snapshot_.clock_offset),
           reservation_->at, WaitCause::capacity});
    else
      plan_.waits.push_back({job.job, reserved_job_reason_, {}, WaitCause::capacity});
  }

  // Preempts running jobs for this job, unless enough are already ending, and returns its reason.
  // Returns nullopt if preemption is not possible or would not help.
  std::optional<std::string> preempt_for(const WaitingJob& job, const Gang& gang) {
    if (free_after_endings_.empty()) collect_ending_allocations();
    auto choice = choose_preempted(
        job, gang,
        {topology_, allocations_, limits_, quotas_, leaving_, free_after_endings_, ends(job),
         reservation_ && !in_time(ends(job)) ? &reservation_->spare : nullptr});
    if (!choice) return std::nullopt;
    std::vector<std::string_view> names;
    for (const uint32_t index : choice->preempted) {
      const Running& running = *allocations_.all()[index].running;
      plan_.preemptions.push_back({running.job, preemption_reason(job, running)});
      names.push_back(running.name);
      leaving_.push_back(index);
    }
    std::string reason = preempted_reason(names);
    quotas_.leave(allocations_, choice->preempted);
    quotas_.reserve(job, std::nullopt);
    quota_reasons_[&job.name] = reason;
    // Reserves the part of the free capacity that the job will need in addition to the reclaimed
    // capacity.
    free_after_endings_ = std::move(choice->then);
    for (uint32_t host = 0; host < gang.hosts; ++host)
      free_after_endings_[choice->layout[host]] =
          minus(free_after_endings_[choice->layout[host]], gang.share_of(host));
    for (const uint32_t m : choice->layout)
      set_free(m, least_of(capacity_.free(m), free_after_endings_[m]));
    return reason;
  }

  void collect_ending_allocations() {
    free_after_endings_ = capacity_.all();
    for (uint32_t i = 0; i < allocations_.all().size(); ++i) {
      const Allocation& allocation = allocations_.all()[i];
      if (!allocation.running || !allocation.running->leaving) continue;
      leaving_.push_back(i);
      for (const HeldHost& host : allocations_.hosts(allocation))
        free_after_endings_[host.machine] = plus(free_after_endings_[host.machine], host.share);
    }
  }

  // Returns the reason of all jobs that wait behind the job with the reservation.
  const SharedText& behind_first() {
    if (behind_first_.empty()) behind_first_ = behind_reason(reserved_job_, reserved_job_reason_);
    return behind_first_;
  }

  // -- starts

  // Starts the job on a warm pool that it may take over. Returns false if there is none.
  bool take_pool(uint32_t index) {
    const WaitingJob& job = snapshot_.waiting[index];
    const Gang& gang = shape_of(index).gang;
    for (const domain::JobNumber number : job.pools) {
      const auto pool = std::ranges::find(snapshot_.pools, number, &Pool::of);
      if (pool == snapshot_.pools.end() || pool->hosts.size() != gang.hosts) continue;
      const auto at = size_t(pool - snapshot_.pools.begin());
      const Choice* choice = nullptr;
      std::string reason;
      if (pool_taken_[at] || quotas_.obstacle(job, ends(job)) || !choose(job, gang, choice, reason))
        continue;
      pool_taken_[at] = true;
      allocations_.take_over(at, job, choice, ends(job));
      double cpus = 0;
      for (const Placement& host : pool->hosts) cpus += host.share.cpus;
      count(job, choice, cpus);
      plan_.starts.push_back({job.job, pool->hosts, "", number, choice ? choice->environment : ""});
      return true;
    }
    return false;
  }

  std::optional<Layout> place(Shape& shape, std::optional<Instant> ends) {
    if (!shape.fits_now) return std::nullopt;
    if (reservation_ && !in_time(ends)) return spare_capacity_->place(shape.gang);
    auto layout = capacity_.place(shape.gang);
    shape.fits_now = layout.has_value();
    return layout;
  }

  void start(uint32_t index, const Choice* choice, const Gang& gang, const Layout& layout) {
    const WaitingJob& job = snapshot_.waiting[index];
    Start start{job.job, {}, gang.note, 0, choice ? choice->environment : ""};
    start.hosts.reserve(gang.hosts);
    const auto over = ends(job);
    const bool takes_spare = reservation_ && !in_time(over);
    uint32_t host = 0;
    for (const Group& group : gang.groups)
      for (uint32_t i = 0; i < group.count; ++i) {
        const uint32_t m = layout[host++];
        start.hosts.push_back({snapshot_.machines[m].name, group.share});
        if (takes_spare) reservation_->spare[m] = minus(reservation_->spare[m], group.share);
        if (!free_after_endings_.empty())
          free_after_endings_[m] = minus(free_after_endings_[m], group.share);
        set_free(m, minus(capacity_.free(m), group.share));
      }
    allocations_.start(job, choice, gang, layout, over);
    count(job, choice, gang.cpus);
    plan_.starts.push_back(std::move(start));
  }

  void count(const WaitingJob& job, const Choice* choice, double cpus) {
    if (choice) limits_.take(*choice, cpus, ends(job));
    quotas_.take(job);
    order_.started(cpus);
  }

  void set_free(uint32_t machine, const Share& free) {
    capacity_.set(machine, free);
    if (reservation_) spare_capacity_->set(machine, least_of(free, reservation_->spare[machine]));
  }

  void wait(uint32_t index, Duration from, std::string reason, WaitCause cause = WaitCause::other) {
    KindResult& found = found_[kinds_.kind_of[index]];
    found.waits_from = std::min(from, found.waits_from.value_or(from));
    found.reason_text = std::move(reason);
    found.cause = cause;
    wait(snapshot_.waiting[index], found.reason_text, cause);
  }
  void wait(const WaitingJob& job, const SharedText& reason, WaitCause cause) {
    plan_.waits.push_back({job.job, reason, {}, cause});
  }

  const Snapshot& snapshot_;
  const Instant now_;
  Allocations allocations_;
  Topology topology_;
  FreeCapacity capacity_;  // free now
  FreeCapacity empty_;     // if no job ran
  Limits limits_;
  Quotas quotas_;
  Kinds kinds_;
  JobOrder order_;
  std::vector<KindResult> found_;  // by kind
  std::vector<bool> pool_taken_;
  std::vector<Shape> shapes_;
  // By job with a quota reservation: its reason.
  std::map<const std::string*, std::string> quota_reasons_;
  // The reservation of the first job that waits for machines.
  std::optional<Reservation> reservation_;
  std::optional<FreeCapacity> spare_capacity_;  // for jobs that would not end before it begins
  std::string reserved_job_, reserved_job_reason_;
  SharedText behind_first_;  // the reason of the jobs behind the reservation
  // Both are empty until a job reclaims quota: the allocations that are ending; and, by machine,
  // what is free and not reserved once they have ended.
  std::vector<uint32_t> leaving_;
  std::vector<Share> free_after_endings_;
  bool nothing_reserved_yet_ = true;  // no decided job has a reservation of a limit or quota
  Plan plan_;
};

}  // namespace

Plan plan(const Snapshot& snapshot, const Policy& policy, Instant now) {
  const auto plan_once = [&](const Snapshot& tried) { return Planner(tried, policy, now).run(); };
  const bool choices = std::ranges::any_of(
      snapshot.waiting, [](const WaitingJob& waiting) { return !waiting.alternatives.empty(); });
  return choices ? plan_by_preference(snapshot, plan_once) : plan_once(snapshot);
}

Result<HostRequest> host_request_of(const domain::InstanceGroup& group) {
  HostRequest request{group.instance_type, {}, group.count};
  request.share = group.share ? *group.share : TRY(host_request_for(group.instance_type)).share;
  return request;
}

Result<HostRequest> host_request_for(std::string_view instance_type) {
  const auto type = domain::find_instance_type(instance_type);
  if (!type) return invalid("unknown instance type '" + shorten(instance_type, 60) + "'");
  return HostRequest{
      std::string(instance_type),
      {double(type->cpus), int64_t(type->memory_gib * 1024 * 1024 * 1024), int64_t(type->gpus)}};
}

}  // namespace trainyard::schedule
