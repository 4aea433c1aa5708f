#include "control/state.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"

namespace trainyard::control {
namespace {

using namespace domain;

// The words of the AWS status machine.
constexpr std::string_view kStartingTheJob = "Starting the training job.";
constexpr std::string_view kPreparing = "Preparing the instances for training.";
constexpr std::string_view kDownloading = "Downloading input data";
constexpr std::string_view kTraining = "Training image download completed. Training in progress.";
constexpr std::string_view kUploading = "Uploading generated training model";
constexpr std::string_view kStopping = "Stopping the training job";
constexpr std::string_view kStopped = "Training job stopped";
constexpr std::string_view kCompleted = "Training job completed";
constexpr std::string_view kMaxRuntimeExceeded = "Training job runtime exceeded MaxRuntimeInSeconds provided";
constexpr std::string_view kMaxWaitExceeded =
    "Training job did not complete within MaxWaitTimeInSeconds provided";
constexpr std::string_view kMaxPendingExceeded =
    "Training job stopped: it did not start within MaxPendingTimeInSeconds provided";
constexpr std::string_view kReplacing = "Launched instance was unhealthy, replacing it!";
constexpr std::string_view kInterrupted = "The training job was interrupted and starts again: ";
constexpr std::string_view kNotSpot = " (it is not a spot job: this one does not count as a retry)";

// A phase that is entered again is the same line of the history with a newer message.
void enter(Job& job, Phase phase, std::string_view message, Instant at) {
  if (!job.transitions.empty()) {
    Transition& last = job.transitions.back();
    if (last.phase == phase) {
      last.message = message;
      return;
    }
    last.end = std::max(at, last.start);
    at = *last.end;
  }
  job.transitions.push_back({phase, std::string(message), at, {}});
}

void end_phases(Job& job) {
  Transition& last = job.transitions.back();
  last.end = last.start;
}

bool every(const Attempt& attempt, HostState at_least) {
  return std::ranges::all_of(attempt.hosts, [&](const Host& host) { return host.state >= at_least; });
}

bool every_final(const Attempt& attempt) {
  return std::ranges::all_of(attempt.hosts, [](const Host& host) { return is_final(host.state); });
}

// Takes one of our own moves, which the code around it knows to be legal.
template <class State, class Event>
void move(State& state, Event event) {
  const auto moved = next(state, event);
  CHECK(moved, "this move was checked before");
  state = *moved;
}

std::string failure_reason(const Attempt& attempt, HostIndex index) {
  const Host& host = attempt.hosts[index];
  const std::string text = host.failure.empty() ? "the training process failed" : host.failure;
  // The words of the host come first, as people search for them; which host it was comes last.
  const std::string where = attempt.hosts.size() > 1 ? " (" + host_name(index) + ")" : "";
  std::string prefix, suffix;
  switch (host.fault.value_or(Fault::algorithm)) {
    case Fault::algorithm:
      prefix = "AlgorithmError: ";
      if (host.exit_code) suffix = ", exit code: " + std::to_string(*host.exit_code);
      break;
    case Fault::client:
      prefix = "ClientError: ";
      break;
    case Fault::internal:
      prefix = "InternalServerError: ";
      break;
  }
  suffix += where;
  return prefix + shorten(text, kFailureReasonBytesMax - prefix.size() - suffix.size()) + suffix;
}

// What is kept of an attempt when its hosts are forgotten.
void note_end(Attempt& attempt, const Host& host) {
  attempt.exit_code = host.exit_code;
  attempt.failure = shorten(host.failure, kFailureReasonBytesMax);
  attempt.fault = host.fault;
}

// Whether a job whose attempt ends by this host's failure gets another one: spot jobs as long as they may wait, others
// as often as they asked for. Only what is ours to mend is tried again.
bool tries_again(const Job& job, const Attempt& attempt, const Host& host) {
  const bool told_to_stop = job.stop_cause != StopCause::none && job.stop_cause != StopCause::host_failed;
  if (job.state != JobState::active || told_to_stop || attempt.interrupted ||
      job.attempts.size() >= kAttemptsMax)
    return false;
  const auto failed = std::ranges::count_if(
      job.attempts, [](const Attempt& each) { return each.first_failed && !each.interrupted; });
  if (job.spec.batch) {
    Attempt ended = attempt;
    note_end(ended, host);
    return domain::tries_again(*job.spec.batch, size_t(failed), end_of(ended));
  }
  if (host.fault != Fault::internal) return false;
  if (job.spec.spot) return true;
  return size_t(failed) <= job.spec.retries_max;  // this one is among them
}

// What the job leaves to the next one that matches, when it is over.
void leave_pool(Job& job, bool hosts_are_well, Instant at) {
  if (!job.warm_pool || job.warm_pool->state != WarmPoolState::in_use) return;
  WarmPool& pool = *job.warm_pool;
  if (hosts_are_well && pool.keep_alive_seconds > 0) {
    pool.state = WarmPoolState::available;
    pool.available = at;
  } else {
    pool.state = WarmPoolState::terminated;
    pool.ended = at;
  }
}

// The last phase of a job that was stopped.
void enter_stopped(Job& job, Instant at) {
  if (job.stop_cause == StopCause::max_runtime)
    enter(job, Phase::max_runtime_exceeded, kMaxRuntimeExceeded, at);
  else if (job.stop_cause == StopCause::max_wait)
    enter(job, Phase::max_wait_time_exceeded, kMaxWaitExceeded, at);
  else
    enter(job, Phase::stopped, job.stop_cause == StopCause::max_pending ? kMaxPendingExceeded : kStopped, at);
  end_phases(job);
}

// An interruption that came when every host had done its part. (One that failed, and is tried again for that, may have
// ended before its agent heard of it.)
bool done_all_the_same(const Attempt& attempt) {
  return !attempt.first_failed && std::ranges::all_of(attempt.hosts, [](const Host& host) {
    return host.state == HostState::finished && host.stopped == StopCause::none;
  });
}

// A rank whose peer is gone fails with an error of its own, and may be heard first. So when all is known, a fault of ours
// in any host counts, whoever said so first.
void look_for_faults_of_ours(Job& job, Attempt& attempt, Instant at) {
  if (!attempt.first_failed || !attempt.interruption.empty() || job.spec.batch) return;
  for (HostIndex index = 0; index < attempt.hosts.size(); ++index) {
    if (!tries_again(job, attempt, attempt.hosts[index])) continue;
    attempt.interruption = failure_reason(attempt, index);
    if (job.spec.spot) enter(job, Phase::interrupted, std::string(kInterrupted) + attempt.interruption, at);
    return;
  }
}

// The attempt was taken away: the job waits for its next one.
void wait_again(Job& job, const Attempt& attempt, Instant at) {
  move(job.state, JobEvent::retry);
  job.stop_cause = StopCause::none;
  job.model_uri.clear();
  job.output_uri.clear();
  if (job.phase() != Phase::interrupted)
    enter(job, Phase::starting, std::string(kReplacing) + " " + attempt.interruption, at);
}

// Every host's run is over: so is the attempt, and the job with it, unless it gets another one.
void finish(Job& job, Attempt& attempt, Instant at) {
  if (attempt.state != AttemptState::draining) move(attempt.state, AttemptEvent::drain);
  move(attempt.state, AttemptEvent::end);
  attempt.ended = at;
  note_end(attempt, attempt.hosts[attempt.first_failed.value_or(0)]);
  look_for_faults_of_ours(job, attempt, at);
  const bool taken_away = !attempt.interruption.empty() && !done_all_the_same(attempt);
  if (taken_away && job.state == JobState::active && job.attempts.size() < kAttemptsMax)
    return wait_again(job, attempt, at);
  if (job.training_start) job.training_end = std::max(at, *job.training_start);
  leave_pool(
      job,
      std::ranges::none_of(attempt.hosts, [](const Host& host) { return host.state == HostState::lost; }),
      at);
  if (job.stop_cause != StopCause::none && (taken_away || !attempt.first_failed)) {
    move(job.state, JobEvent::finish_stopped);
    return enter_stopped(job, at);
  }
  if (attempt.first_failed || taken_away) {
    job.failure_reason = attempt.first_failed
                             ? failure_reason(attempt, *attempt.first_failed)
                             : "InternalServerError: it was interrupted " + std::to_string(kAttemptsMax) +
                                   " times, the last time: " + attempt.interruption;
    move(job.state, JobEvent::fail);
    enter(job, Phase::failed, job.failure_reason, at);
  } else {
    move(job.state, JobEvent::complete);
    enter(job, Phase::completed, kCompleted, at);
  }
  end_phases(job);
}

// After a host moved: what its gang's states make of attempt and job. `happened` is when it did, `at` is now.
void follow(Job& job, Attempt& attempt, Instant happened, Instant at) {
  if (attempt.state == AttemptState::starting && every(attempt, HostState::running))
    move(attempt.state, AttemptEvent::run);
  if (attempt.state != AttemptState::draining && every(attempt, HostState::draining))
    move(attempt.state, AttemptEvent::drain);

  // While a gang is being stopped, or ends because a host failed or was taken away, the user sees what was, until it is
  // over.
  if (job.state == JobState::active && job.stop_cause == StopCause::none && attempt.interruption.empty()) {
    if (every(attempt, HostState::uploading))
      enter(job, Phase::uploading, kUploading, happened);
    else if (every(attempt, HostState::running)) {
      // Once: what a host has said of itself meanwhile stays.
      if (job.phase() != Phase::training) enter(job, Phase::training, kTraining, happened);
    } else if (job.phase() != Phase::downloading && std::ranges::any_of(attempt.hosts, [](const Host& host) {
                 return host.state >= HostState::downloading;
               }))
      enter(job, Phase::downloading, kDownloading, happened);
  }
  if (every_final(attempt)) finish(job, attempt, at);
}

// The present attempt, when it is `id` and has not ended.
Result<Attempt*> attempt_of(Job& job, AttemptId id) {
  if (job.attempts.empty() || job.attempts.back().number != id.number)
    return denied("attempt " + id.text() + " is not the present one of " + job_title(job));
  return &job.attempts.back();
}

class Applying {
 public:
  Applying(const Subject& subject, Instant at) : subject_(subject), at_(at) {
    if (!subject.job) return;
    job_ = *subject.job;
    // Wall clocks are set back; histories are not.
    at_ = std::max(at, job_.modified);
  }

  Result<Change> on(const Create& create) {
    CHECK(!subject_.job, "the writer has looked whether the name is taken");
    Change change{create.job, {}};
    change.job->created = change.job->modified = at_;
    if (const int64_t keep = change.job->spec.keep_alive_seconds; keep > 0)
      change.job->warm_pool = WarmPool{WarmPoolState::in_use, keep, {}, {}, {}};
    enter(*change.job, Phase::starting, kStartingTheJob, at_);
    if (!create.tags.empty()) change.tags.emplace(create.arn, create.tags);
    return change;
  }

  Result<Change> on(const StopJob&) {
    if (job_.state == JobState::stopping) return Change{};
    const bool waited = job_.state == JobState::waiting;
    job_.state = TRY(next(job_.state, JobEvent::stop));
    job_.stop_requested = at_;
    if (job_.stop_cause == StopCause::none) job_.stop_cause = StopCause::user;
    if (waited)
      stop_waiting();
    else
      enter(job_, Phase::stopping, kStopping, at_);
    return changed();
  }

  Result<Change> on(const Withdraw& withdraw) {
    const bool only_waiting =
        withdraw.how != Withdrawn::terminated && withdraw.how != Withdrawn::queue_deleted;
    if (job_.finished() || job_.state == JobState::stopping) return Change{};
    if (only_waiting && job_.state != JobState::waiting) return Change{};
    job_.withdrawn = withdraw.how;
    job_.withdrawn_reason = withdraw.reason;
    return on(StopJob{job_.number});
  }

  Result<Change> on(const StopAwaiting& command) {
    if (std::erase(job_.awaits, command.awaited) == 0) return Change{};
    return changed();
  }

  Result<Change> on(const ChangeNoun& command) {
    CHECK(subject_.yard, "who applies a change of the yard has one");
    Change change;
    change.noun = TRY(domain::changed(*subject_.yard, subject_.definition, command.how, command.noun));
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
      return invalid("a resource has at most " + std::to_string(kTagsMax) + " tags, and this would make " +
                     std::to_string(tags.size()));
    Change change;
    change.tags.emplace(set.arn, std::move(tags));
    return change;
  }

  Result<Change> on(const Place& place) {
    if (job_.state != JobState::waiting) return Change{};
    move(job_.state, JobEvent::place);
    Attempt attempt;
    attempt.number = uint32_t(job_.attempts.size()) + 1;
    attempt.token = place.token;
    attempt.started = at_;
    attempt.warm_pool = place.warm_pool;
    attempt.environment = place.environment;
    if (place.warm_pool != 0 && !job_.warm_pool) job_.warm_pool.emplace();
    if (!job_.attempts.empty()) job_.attempts.back().hosts.clear();
    for (const Place::At& each : place.hosts) {
      Host host;
      host.machine = each.machine;
      host.share = each.share;
      host.state_since = at_;
      attempt.hosts.push_back(std::move(host));
    }
    job_.attempts.push_back(std::move(attempt));
    job_.note = place.note;
    enter(job_, Phase::starting, kPreparing, at_);
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
      return conflict("fact " + std::to_string(fact.number) + " came where " +
                      std::to_string(host.facts_applied + 1) + " is next");
    host.facts_applied = fact.number;
    // The same state again brings words about the host: that it seems to hang, or does no longer.
    if (fact.state == HostState::running && host.state == HostState::running) {
      if (job_.phase() == Phase::training)
        enter(job_, Phase::training,
              std::string(kTraining) + (fact.message.empty() ? "" : " " + fact.message), at_);
      return changed();
    }
    // A fact that cannot be (an agent that was given up for lost goes on reporting) is counted and changes
    // nothing.
    const auto state = next(host.state, fact.state);
    if (!state || fact.state == HostState::lost) {
      if (fact.state == host.state) tell(host.state, fact.message);
      return changed();
    }

    const Instant happened = std::clamp(fact.at, std::min(host.state_since, at_), at_);
    host.state = *state;
    host.state_since = happened;
    if (fact.exit_code) host.exit_code = fact.exit_code;
    if (fact.stopped != StopCause::none) host.stopped = fact.stopped;
    // Its agent saw to the time while we were away.
    if (fact.stopped == StopCause::max_runtime && may_expire() && attempt.interruption.empty())
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
    follow(job_, attempt, happened, at_);
    return changed();
  }

  Result<Change> on(const Lose& lose) {
    Attempt& attempt = *TRY(attempt_of(job_, lose.attempt));
    bool any = false;
    for (const HostIndex index : lose.hosts) {
      CHECK(index < attempt.hosts.size(), "our own loop names hosts of the attempt");
      Host& host = attempt.hosts[index];
      if (is_final(host.state)) continue;
      const bool ran = host.state >= HostState::running;
      host.state = HostState::lost;
      host.state_since = at_;
      host.failure = lose.reason;
      host.fault = lose.fault;
      any = true;
      // Whoever asked for a stop before the host ran has not lost anything with it.
      if (!attempt.first_failed && attempt.interruption.empty() && (ran || job_.state != JobState::stopping))
        fail(attempt, index);
    }
    if (!any) return Change{};
    follow(job_, attempt, at_, at_);
    return changed();
  }

  Result<Change> on(const Expire& command) {
    if (!may_expire()) return Change{};
    expire(command.cause);
    return changed();
  }

  Result<Change> on(const Interrupt& command) {
    const bool ours = command.attempt != 0;  // our own loop's: whoever asked for it needs no answer
    if (job_.state != JobState::active) {
      if (ours) return Change{};
      return conflict("nothing of it runs that could be interrupted: it is " +
                      std::string(to_string(job_.state)));
    }
    Attempt& attempt = job_.attempts.back();
    if ((ours && command.attempt != attempt.number) || attempt.interrupted) return Change{};
    if (command.host && *command.host >= attempt.hosts.size())
      return invalid("it has " + std::to_string(attempt.hosts.size()) + " hosts: algo-1 to " +
                     host_name(HostIndex(attempt.hosts.size() - 1)));
    if (attempt.first_failed || job_.stop_cause != StopCause::none) {
      if (ours) return Change{};
      return conflict("its attempt is ending already");
    }
    attempt.interruption = (command.host ? host_name(*command.host) + ": " : "") + command.reason;
    attempt.interrupted = at_;
    attempt.notice = command.notice;
    enter(job_, Phase::interrupted,
          std::string(kInterrupted) + attempt.interruption + std::string(job_.spec.spot ? "" : kNotSpot),
          at_);
    return changed();
  }

  Result<Change> on(const KeepAlive& command) {
    if (!job_.warm_pool) return conflict("it was created without KeepAlivePeriodInSeconds");
    WarmPool& pool = *job_.warm_pool;
    if (pool.state != WarmPoolState::in_use && pool.state != WarmPoolState::available)
      return conflict("its warm pool is " + std::string(to_string(pool.state)));
    if (pool.keep_alive_seconds == command.seconds) return Change{};
    // Its time may have been over already, and nobody has noticed yet.
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
    // We may notice late that its time is over.
    pool.ended = std::max(*pool.available, end.reused_by.empty() ? std::min(at_, pool.until()) : at_);
    pool.state = end.reused_by.empty() ? WarmPoolState::terminated : WarmPoolState::reused;
    pool.reused_by = end.reused_by;
    return changed();
  }

 private:
  // A further word of a host on what it is doing ("120 of 480 MiB") is the present message while the job is at that; of
  // several hosts the last word counts.
  void tell(HostState state, const std::string& message) {
    const bool shown = (state == HostState::downloading && job_.phase() == Phase::downloading) ||
                       (state == HostState::uploading && job_.phase() == Phase::uploading);
    if (shown && !message.empty()) enter(job_, job_.phase(), message, at_);
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
    enter(job_, Phase::stopping, kStopping, at_);
    if (waited) stop_waiting();
  }

  // Nothing of it runs, so it is over at once.
  void stop_waiting() {
    if (job_.training_start) job_.training_end = job_.attempts.back().ended;
    leave_pool(job_, false, at_);
    enter_stopped(job_, at_);
  }

  // A host's process ended badly, or the host could not do its part. After a stop was asked for, a process
  // that ends badly is the stop's doing, or a consequence of its peers' going.
  void note_failure(Attempt& attempt, HostIndex index) {
    const Host& host = attempt.hosts[index];
    if (attempt.first_failed || !attempt.interruption.empty()) return;
    const bool asked = job_.stop_cause != StopCause::none;
    if (host.state == HostState::failed) {
      if (!asked || host.fault != Fault::algorithm) fail(attempt, index);
    } else if (host.state == HostState::draining && host.exit_code.value_or(0) != 0 && !asked) {
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
  Instant at_;
  Job job_;
};

}  // namespace

Result<Change> apply(const Subject& subject, const Command& command, Instant at) {
  const bool of_no_job = std::holds_alternative<Create>(command) ||
                         std::holds_alternative<SetTags>(command) ||
                         std::holds_alternative<ChangeNoun>(command);
  if (!subject.job && !of_no_job) return not_found("there is no such job");
  Applying applying(subject, at);
  return std::visit([&](const auto& each) { return applying.on(each); }, command);
}

std::optional<JobNumber> job_of(const Command& command) {
  struct Number {
    std::optional<JobNumber> operator()(const Create& c) const { return c.job.number; }
    std::optional<JobNumber> operator()(const StopJob& c) const { return c.job; }
    std::optional<JobNumber> operator()(const SetTags&) const { return std::nullopt; }
    std::optional<JobNumber> operator()(const Place& c) const { return c.job; }
    std::optional<JobNumber> operator()(const Fact& c) const { return c.attempt.job; }
    std::optional<JobNumber> operator()(const Lose& c) const { return c.attempt.job; }
    std::optional<JobNumber> operator()(const Expire& c) const { return c.job; }
    std::optional<JobNumber> operator()(const Interrupt& c) const { return c.job; }
    std::optional<JobNumber> operator()(const KeepAlive& c) const { return c.job; }
    std::optional<JobNumber> operator()(const EndPool& c) const { return c.job; }
    std::optional<JobNumber> operator()(const Withdraw& c) const { return c.job; }
    std::optional<JobNumber> operator()(const StopAwaiting& c) const { return c.job; }
    std::optional<JobNumber> operator()(const ChangeNoun&) const { return std::nullopt; }
  };
  return std::visit(Number{}, command);
}

std::string job_title(const Job& job) {
  if (job.spec.plain()) return "job/" + job.spec.batch->name + " (" + job.key.name + ")";
  return "training-job/" + job.key.name;
}

Duration stop_grace_of(const Job& job, Duration usual) {
  return job.spec.plain() ? std::min<Duration>(usual, std::chrono::seconds(kBatchStopGraceSeconds)) : usual;
}

std::string_view log_group_of(const Job& job) { return job.spec.plain() ? kBatchLogGroup : kLogGroup; }

std::string log_stream_of(const Job& job, const Attempt& attempt, HostIndex host) {
  if (job.spec.plain()) {
    // Nobody but this attempt's host has it, and it is always the same.
    const std::string whole = job.key.region + "/" + job.key.name + "/" + std::to_string(attempt.number) +
                              "/" + std::to_string(host);
    return shorten(job.spec.batch->definition_name(), kDefinitionInStreamMax) + "/default/" +
           to_hex(bytes_of(sha256(whole))).substr(0, 32);
  }
  int64_t second = 0;
  for (const Attempt& each : job.attempts) {
    second = std::max(second + 1, to_milliseconds(each.started) / 1000);
    if (each.number == attempt.number) break;
  }
  return job.key.name + "/" + host_name(host) + "-" + std::to_string(second);
}

}  // namespace trainyard::control
