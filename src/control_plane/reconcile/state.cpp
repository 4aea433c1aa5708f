#include "reconcile/state.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "batch/catalog.hpp"
#include "domain/array.hpp"
#include "reconcile/attempt.hpp"

namespace trainyard::reconcile {
namespace {

using namespace domain;

constexpr std::string_view kAllChildrenSucceeded = "All children of the array have succeeded";
constexpr std::string_view kChildFailed = "Array Child Job failed";
constexpr std::string_view kNotSpot = " (it is not a spot job: this one does not count as a retry)";
constexpr std::string_view kPreempted = " (a preemption does not count as a retry)";

// Returns the current attempt, if it is `id` and has not ended.
Result<Attempt*> attempt_of(Job& job, AttemptId id) {
  if (job.attempts.empty() || job.attempts.back().number != id.number)
    return denied("attempt " + id.text() + " is not the current attempt of " + job_title(job));
  return &job.attempts.back();
}

Job made_of(const CreateJob& create) {
  Job job;
  job.number = create.number;
  job.key = create.key;
  job.account = create.account;
  job.spec = create.spec;
  job.clock_offset = create.clock_offset;
  job.awaits = create.awaits;
  job.awaits_alike = create.awaits_alike;
  return job;
}

class CommandApplier {
 public:
  CommandApplier(const Subject& subject, Instant at) : subject_(subject), at_(at) {
    if (!subject.job) return;
    job_ = *subject.job;
    at_ = std::max(job_.own_time(at), job_.modified);
  }

  Result<Change> on(const CreateJob& create) {
    CHECK(!subject_.job, "the writer has checked that the name is not in use");
    Change change;
    change.job = made_of(create);
    at_ = change.job->own_time(at_);
    change.job->created = change.job->modified = at_;
    if (const int64_t keep = change.job->spec.keep_alive_seconds; keep > 0)
      change.job->warm_pool = WarmPool{WarmPoolState::in_use, keep, {}, {}, {}};
    enter(*change.job, Phase::starting, contract::kStartingTheJob, at_);
    if (!create.tags.empty()) change.tags.emplace(create.arn, create.tags);
    return change;
  }

  Result<Change> on(const StopJob& stop) {
    const std::string message =
        std::string(contract::kStopping) + (stop.reason.empty() ? "" : ": " + stop.reason);
    if (job_.state == JobState::stopping) {
      if (may_stop_sooner(stop.grace) && !stop.reason.empty())
        enter(job_, Phase::stopping, message, at_);
      return stop_sooner(stop.grace);
    }
    const bool waited = job_.state == JobState::waiting;
    job_.state = TRY(next(job_.state, JobEvent::stop));
    job_.stop_requested = at_;
    set_grace(stop.grace);
    if (job_.stop_cause == StopCause::none) job_.stop_cause = StopCause::user;
    if (waited)
      stop_waiting();
    else
      enter(job_, Phase::stopping, message, at_);
    return changed();
  }

  Result<Change> on(const CancelJob& cancel) {
    const bool only_waiting =
        cancel.how != Cancellation::terminated && cancel.how != Cancellation::queue_deleted;
    if (job_.finished()) return Change{};
    // Running children of a cancelled array may still be terminated.
    const bool further =
        job_.is_array() && job_.cancellation == Cancellation::cancelled && !only_waiting;
    if (job_.state == JobState::stopping && !further) return stop_sooner(cancel.grace);
    if (only_waiting && job_.state != JobState::waiting && !job_.is_array()) return Change{};
    job_.cancellation = cancel.how;
    job_.cancellation_reason = cancel.reason;
    if (job_.state != JobState::stopping) return on(StopJob{job_.number, cancel.grace});
    set_grace(cancel.grace);
    return changed();
  }

  Result<Change> on(const MakeChildren& make) {
    if (job_.state != JobState::waiting && job_.state != JobState::active) return Change{};
    const uint32_t first = job_.children_made;
    const uint32_t count = std::min(make.count, job_.spec.array.size - first);
    if (count == 0 || !job_.awaits.empty()) return Change{};
    if (job_.state == JobState::waiting) move(job_.state, JobEvent::place);
    job_.children_made += count;
    std::vector<Job> children;
    for (uint32_t index = first; index < first + count; ++index) {
      if (subject_.made_before.contains(child_number(job_.number, index))) continue;
      children.push_back(child_of(job_, index));
      children.back().modified = at_;
    }
    Change change = TRY(changed());
    change.children = std::move(children);
    return change;
  }

  Result<Change> on(const FinishArray& finish) {
    if (job_.state != JobState::active && job_.state != JobState::stopping) return Change{};
    if (!finish.failed) {
      move(job_.state, JobEvent::complete);
      enter(job_, Phase::completed, kAllChildrenSucceeded, at_);
    } else if (job_.state == JobState::stopping) {
      move(job_.state, JobEvent::finish_stopped);
      enter_stopped(job_, at_);
      return changed();
    } else {
      move(job_.state, JobEvent::fail);
      job_.failure_reason = kChildFailed;
      enter(job_, Phase::failed, kChildFailed, at_);
    }
    end_phases(job_);
    return changed();
  }

  Result<Change> on(const Fail& command) {
    if (job_.finished()) return Change{};
    if (!job_.attempts.empty() && job_.attempts.back().state != AttemptState::ended)
      give_up(job_.attempts.back(), command.reason);
    if (job_.training_start) job_.training_end = std::max(at_, *job_.training_start);
    leave_pool(job_, false, at_);
    job_.failure_reason =
        std::string(contract::kInternalServerError) +
        shorten(command.reason, kFailureReasonBytesMax - contract::kInternalServerError.size());
    move(job_.state, JobEvent::fail);
    enter(job_, Phase::failed, job_.failure_reason, at_);
    end_phases(job_);
    return changed();
  }

  Result<Change> on(const StopAwaiting& command) {
    if (std::erase(job_.awaits, command.awaited) == 0) return Change{};
    return changed();
  }

  Result<Change> on(const Prioritise& command) {
    if (job_.finished()) return conflict("it has ended, and its priority has no effect");
    if (job_.priority() == command.priority) return Change{};
    job_.new_priority = command.priority;
    return changed();
  }

  Result<Change> on(const ChangeResource& command) {
    CHECK(subject_.catalog, "the writer passes the catalog to a change of resources");
    Change change;
    change.resource =
        TRY(batch::changed(*subject_.catalog, subject_.definition, command.how, command.resource));
    return change;
  }

  Result<Change> on(const ChangeRecords& command) {
    CHECK(subject_.records, "the writer passes the records to a change of records");
    if (command.expected && *command.expected != subject_.records->version)
      return conflict("the records have changed since they were read: read them again");
    Change change;
    change.records = std::make_shared<const domain::Records>(
        TRY(domain::changed(*subject_.records, command.writes)));
    return change;
  }

  Result<Change> on(const SetTags& set) {
    std::vector<Tag> tags = subject_.tags ? *subject_.tags : std::vector<Tag>{};
    std::erase_if(tags, [&](const Tag& tag) {
      return std::ranges::find(set.remove_keys, tag.key) != set.remove_keys.end();
    });
    for (const Tag& tag : set.add) {
      const auto found = std::ranges::find(tags, tag.key, &Tag::key);
      if (found == tags.end())
        tags.push_back(tag);
      else
        found->value = tag.value;
    }
    if (tags.size() > kTagsMax)
      return invalid("a resource has at most " + std::to_string(kTagsMax) +
                     " tags, and this would make " + std::to_string(tags.size()));
    Change change;
    change.tags.emplace(set.arn, std::move(tags));
    return change;
  }

  Result<Change> on(const StartAttempt& start) {
    if (job_.state != JobState::waiting || job_.is_array()) return Change{};
    move(job_.state, JobEvent::place);
    if (start.preference && !job_.selected) {
      job_.selected = start.preference;
      job_.use_selected();
    }
    Attempt attempt;
    attempt.number = uint32_t(job_.attempts.size()) + 1;
    attempt.token = start.token;
    attempt.started = at_;
    attempt.warm_pool = start.pool;
    attempt.environment = start.environment;
    attempt.spot = start.spot;
    attempt.mutual_tls = start.mutual_tls;
    if (start.pool != 0 && !job_.warm_pool) job_.warm_pool.emplace();
    if (!job_.attempts.empty()) job_.attempts.back().hosts.clear();
    for (const Placement& each : start.hosts) {
      Host host;
      host.machine = each.machine;
      host.share = each.share;
      host.reach(HostState::placed, at_);
      attempt.hosts.push_back(std::move(host));
    }
    job_.attempts.push_back(std::move(attempt));
    job_.note = start.note;
    enter(job_, Phase::starting, contract::kPreparing, at_);
    return changed();
  }

  Result<Change> on(const Fact& command) {
    Attempt& attempt = *TRY(attempt_of(job_, command.attempt));
    if (command.host >= attempt.hosts.size())
      return invalid("attempt " + command.attempt.text() + " has no such host");
    Host& host = attempt.hosts[command.host];
    const wire::StateFact& fact = command.fact;
    if (fact.number <= host.facts_applied) return Change{};
    if (fact.number != host.facts_applied + 1)
      return conflict("fact " + std::to_string(fact.number) + " is out of order: expected " +
                      std::to_string(host.facts_applied + 1));
    host.facts_applied = fact.number;
    // A repeated state carries a message: that the host seems to hang, or no longer does.
    if (fact.state == HostState::running && host.state == HostState::running) {
      if (job_.phase() == Phase::training)
        enter(job_, Phase::training,
              std::string(contract::kTraining) + (fact.message.empty() ? "" : " " + fact.message),
              at_);
      return changed();
    }
    // An impossible fact (a lost agent continues to report) is counted and changes nothing.
    const auto state = next(host.state, fact.state);
    if (!state || fact.state == HostState::lost) {
      if (fact.state == host.state) tell(host.state, fact.message);
      return changed();
    }

    const Instant happened = std::clamp(fact.at, std::min(host.state_since, at_), at_);
    host.reach(*state, happened);
    if (!fact.address.empty()) host.address = fact.address;
    if (fact.exit_code) host.exit_code = fact.exit_code;
    if (fact.stopped != StopCause::none) host.stopped = fact.stopped;
    // The agent enforced the time limit while the server was down.
    if (fact.stopped == StopCause::max_runtime && may_expire() && attempt.interruption.empty() &&
        job_.spec.decides(command.host))
      expire(StopCause::max_runtime);
    if (host.state == HostState::uploading) host.staged_model = fact.staged_model;
    if (host.state == HostState::running) {
      attempt.training_started = std::min(happened, attempt.training_started.value_or(happened));
      job_.training_start = std::min(happened, job_.training_start.value_or(happened));
    }
    if (command.host == 0 && !fact.model_uri.empty()) job_.model_uri = fact.model_uri;
    if (!fact.output_uri.empty() && job_.output_uri.empty()) job_.output_uri = fact.output_uri;
    if (host.state == HostState::failed || fact.fault) {
      host.failure = fact.message;
      host.fault = fact.fault.value_or(Fault::internal);
    }
    note_failure(attempt, command.host);
    update_from_hosts(job_, attempt, happened, at_);
    return changed();
  }

  Result<Change> on(const Lose& lose) {
    Attempt& attempt = *TRY(attempt_of(job_, lose.attempt));
    bool any = false;
    for (const HostIndex index : lose.hosts) {
      require(index < attempt.hosts.size(), "a lost host is not one of the attempt's");
      Host& host = attempt.hosts[index];
      if (is_final(host.state)) continue;
      const bool ran = host.state >= HostState::running;
      host.reach(HostState::lost, at_);
      host.failure = lose.reason;
      host.fault = lose.fault;
      any = true;
      // If the stop was requested before the host ran, the job has lost nothing with it.
      if (!attempt.first_failed && attempt.interruption.empty() && job_.spec.decides(index) &&
          (ran || job_.state != JobState::stopping))
        fail(attempt, index);
    }
    if (!any) return Change{};
    update_from_hosts(job_, attempt, at_, at_);
    return changed();
  }

  Result<Change> on(const Expire& command) {
    if (!may_expire()) return Change{};
    set_grace(command.grace);
    expire(command.cause);
    return changed();
  }

  Result<Change> on(const Interrupt& command) {
    const bool ours = command.attempt != 0;  // from the reconciler, which needs no answer
    if (job_.is_array())
      return conflict("it is an array: its children run, and are interrupted one by one");
    if (job_.state != JobState::active) {
      if (ours) return Change{};
      return conflict(job_.finished() ? "it has ended"
                                      : "it has no running hosts, since it is " +
                                            std::string(to_string(job_.state)));
    }
    Attempt& attempt = job_.attempts.back();
    if ((ours && command.attempt != attempt.number) || attempt.interrupted) return Change{};
    if (command.host && *command.host >= attempt.hosts.size())
      return invalid(attempt.hosts.size() == 1
                         ? "its only host is algo-1"
                         : "its hosts are algo-1 to " +
                               host_name(HostIndex(attempt.hosts.size() - 1)));
    if (attempt.first_failed || job_.stop_cause != StopCause::none) {
      if (ours) return Change{};
      return conflict("its attempt is already ending");
    }
    attempt.interruption = (command.host ? host_name(*command.host) + ": " : "") + command.reason;
    attempt.interrupted = at_;
    attempt.notice = command.notice;
    attempt.preempted = command.preemption;
    const std::string_view why = job_.on_spot(attempt) ? ""
                                 : command.preemption  ? kPreempted
                                                       : kNotSpot;
    enter(job_, Phase::interrupted,
          std::string(kInterrupted) + attempt.interruption + std::string(why), at_);
    return changed();
  }

  Result<Change> on(const KeepAlive& command) {
    if (!job_.warm_pool) return conflict("it was created without KeepAlivePeriodInSeconds");
    WarmPool& pool = *job_.warm_pool;
    if (pool.state != WarmPoolState::in_use && pool.state != WarmPoolState::available)
      return conflict("its warm pool is " + std::string(to_string(pool.state)));
    if (pool.keep_alive_seconds == command.seconds) return Change{};
    // Its time may have ended since the last iteration.
    const Instant kept_until = pool.available ? std::min(at_, pool.until()) : at_;
    pool.keep_alive_seconds = command.seconds;
    if (job_.keeps_hosts() && pool.until() <= at_) {
      pool.state = WarmPoolState::terminated;
      pool.ended = kept_until;
    }
    return changed();
  }

  Result<Change> on(const EndPool& end) {
    if (!job_.keeps_hosts()) return Change{};
    WarmPool& pool = *job_.warm_pool;
    // The iteration that ends it may be late.
    pool.ended =
        std::max(*pool.available, end.reused_by.empty() ? std::min(at_, pool.until()) : at_);
    pool.state = end.reused_by.empty() ? WarmPoolState::terminated : WarmPoolState::reused;
    pool.reused_by = end.reused_by;
    return changed();
  }

 private:
  // A further message about the current step ("120 of 480 MiB") replaces the previous one, even of
  // another host.
  void tell(HostState state, const std::string& message) {
    const bool shown = (state == HostState::downloading && job_.phase() == Phase::downloading) ||
                       (state == HostState::uploading && job_.phase() == Phase::uploading);
    if (shown && !message.empty()) enter(job_, job_.phase(), message, at_);
  }

  // The launcher then removes its hosts.
  void give_up(Attempt& attempt, const std::string& reason) {
    move(attempt.state, AttemptEvent::lose);
    attempt.ended = at_;
    attempt.fault = Fault::internal;
    attempt.failure = shorten(reason, kFailureReasonBytesMax);
    for (Host& host : attempt.hosts) {
      if (is_final(host.state)) continue;
      host.reach(HostState::lost, at_);
    }
  }

  void fail(Attempt& attempt, HostIndex index) {
    attempt.first_failed = index;
    if (tries_again(job_, attempt, attempt.hosts[index])) {
      attempt.interruption = failure_reason(attempt, index);
      if (job_.spec.spot)
        enter(job_, Phase::interrupted, std::string(kInterrupted) + attempt.interruption, at_);
    } else if (job_.stop_cause == StopCause::none) {
      job_.stop_cause = StopCause::host_failed;
    }
  }

  bool may_expire() const {
    return job_.stop_cause == StopCause::none &&
           (job_.state == JobState::waiting || job_.state == JobState::active);
  }

  // Requires: may_expire().
  void expire(StopCause cause) {
    const bool waited = job_.state == JobState::waiting;
    move(job_.state, JobEvent::stop);
    job_.stop_requested = at_;
    job_.stop_cause = cause;
    enter(job_, Phase::stopping, contract::kStopping, at_);
    if (waited) stop_waiting();
  }

  void set_grace(std::optional<Duration> grace) {
    if (grace) job_.stop_grace = stop_grace_of(job_, *grace);
  }

  // Only the grace period of a stopping job can change: it can end now.
  bool may_stop_sooner(std::optional<Duration> grace) const {
    return grace == 0ms && job_.stop_grace != 0ms;
  }

  Result<Change> stop_sooner(std::optional<Duration> grace) {
    if (!may_stop_sooner(grace)) return Change{};
    job_.stop_grace = 0ms;
    return changed();
  }

  // None of its hosts runs, so it ends at once.
  void stop_waiting() {
    if (job_.training_start) job_.training_end = job_.attempts.back().ended;
    leave_pool(job_, false, at_);
    enter_stopped(job_, at_);
  }

  // Records that a process failed, or that the platform failed the host. After a stop was
  // requested, a failed process is an effect of the stop, or of the end of its peers. So it is
  // after a stop of the agent's own, whose machine is taken away: the launcher then tells why.
  void note_failure(Attempt& attempt, HostIndex index) {
    const Host& host = attempt.hosts[index];
    if (attempt.first_failed || !attempt.interruption.empty() || !job_.spec.decides(index)) return;
    const bool stopping = job_.stop_cause != StopCause::none;
    if (host.state == HostState::failed) {
      if (!stopping || host.fault != Fault::algorithm) fail(attempt, index);
    } else if (host.state == HostState::draining && host.exit_code.value_or(0) != 0 && !stopping &&
               host.stopped == StopCause::none) {
      fail(attempt, index);
    }
  }

  Result<Change> changed() {
    job_.modified = at_;
    Change change;
    change.job = std::move(job_);
    return change;
  }

  const Subject& subject_;
  Instant at_;  // in the job's time, if the command concerns a job
  Job job_;
};

}  // namespace

Result<Change> apply(const Subject& subject, const Command& command, Instant at) {
  const bool of_no_job = std::holds_alternative<CreateJob>(command) ||
                         std::holds_alternative<SetTags>(command) ||
                         std::holds_alternative<ChangeResource>(command) ||
                         std::holds_alternative<ChangeRecords>(command);
  if (!subject.job && !of_no_job) return not_found("the command's job was not found");
  CommandApplier applier(subject, at);
  return std::visit([&](const auto& each) { return applier.on(each); }, command);
}

std::optional<JobNumber> job_of(const Command& command) {
  struct Number {
    std::optional<JobNumber> operator()(const CreateJob& c) const { return c.number; }
    std::optional<JobNumber> operator()(const StopJob& c) const { return c.job; }
    std::optional<JobNumber> operator()(const SetTags&) const { return std::nullopt; }
    std::optional<JobNumber> operator()(const StartAttempt& c) const { return c.job; }
    std::optional<JobNumber> operator()(const Fact& c) const { return c.attempt.job; }
    std::optional<JobNumber> operator()(const Lose& c) const { return c.attempt.job; }
    std::optional<JobNumber> operator()(const Expire& c) const { return c.job; }
    std::optional<JobNumber> operator()(const Interrupt& c) const { return c.job; }
    std::optional<JobNumber> operator()(const KeepAlive& c) const { return c.job; }
    std::optional<JobNumber> operator()(const EndPool& c) const { return c.job; }
    std::optional<JobNumber> operator()(const CancelJob& c) const { return c.job; }
    std::optional<JobNumber> operator()(const StopAwaiting& c) const { return c.job; }
    std::optional<JobNumber> operator()(const Prioritise& c) const { return c.job; }
    std::optional<JobNumber> operator()(const ChangeResource&) const { return std::nullopt; }
    std::optional<JobNumber> operator()(const ChangeRecords&) const { return std::nullopt; }
    std::optional<JobNumber> operator()(const MakeChildren& c) const { return c.array; }
    std::optional<JobNumber> operator()(const FinishArray& c) const { return c.array; }
    std::optional<JobNumber> operator()(const Fail& c) const { return c.job; }
  };
  return std::visit(Number{}, command);
}

}  // namespace trainyard::reconcile
