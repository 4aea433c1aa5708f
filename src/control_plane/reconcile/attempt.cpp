#include "reconcile/attempt.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "batch/service_job.hpp"
#include "batch/status.hpp"
#include "contract/aws_texts.hpp"
#include "reconcile/state.hpp"

namespace trainyard::reconcile {

using namespace batch;
using namespace domain;

namespace {

// Returns true if the condition holds for all hosts that determine the job's state: all hosts, or
// the main host.
bool every(const Job& job, const Attempt& attempt, HostState at_least) {
  if (const auto main = job.spec.main_host()) return attempt.hosts[*main].state >= at_least;
  return std::ranges::all_of(attempt.hosts,
                             [&](const Host& host) { return host.state >= at_least; });
}

bool every_final(const Attempt& attempt) {
  return std::ranges::all_of(attempt.hosts, [](const Host& host) { return is_final(host.state); });
}

// Removes the hosts of an ended attempt, and keeps the parts of its record that are still needed.
void note_end(Attempt& attempt, const Host& host) {
  attempt.exit_code = host.exit_code;
  attempt.failure = shorten(host.failure, kFailureReasonBytesMax);
  attempt.fault = host.fault;
  attempt.machine = host.machine;
}

// Counts the attempts that count as retries. Reclaimed spot machines of Batch count, as on
// AWS.
size_t failed_attempts(const Job& job) {
  return size_t(std::ranges::count_if(job.attempts, [](const Attempt& each) {
    return each.interrupted ? each.spot && !each.preempted : each.first_failed.has_value();
  }));
}

}  // namespace

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

std::string failure_reason(const Attempt& attempt, HostIndex index) {
  const Host& host = attempt.hosts[index];
  const std::string text = host.failure.empty() ? "the training process failed" : host.failure;
  // The host's message comes first, since users search for it; the host's name comes last.
  const std::string where = attempt.hosts.size() > 1 ? " (" + host_name(index) + ")" : "";
  std::string prefix, suffix;
  switch (host.fault.value_or(Fault::algorithm)) {
    case Fault::algorithm:
      prefix = contract::kAlgorithmError;
      if (host.exit_code) suffix = ", exit code: " + std::to_string(*host.exit_code);
      break;
    case Fault::client:
      prefix = contract::kClientError;
      break;
    case Fault::internal:
    case Fault::lost:
      prefix = contract::kInternalServerError;
      break;
  }
  suffix += where;
  return prefix + shorten(text, kFailureReasonBytesMax - prefix.size() - suffix.size()) + suffix;
}

bool tries_again(const Job& job, const Attempt& attempt, const Host& host) {
  const bool stop_requested =
      job.stop_cause != StopCause::none && job.stop_cause != StopCause::host_failed;
  if (job.state != JobState::active || stop_requested || attempt.interrupted ||
      job.attempts.size() >= kAttemptsMax)
    return false;
  const size_t failed = failed_attempts(job);
  if (job.spec.queue) {
    Attempt ended = attempt;
    note_end(ended, host);
    if (job.spec.contract != Contract::training)
      return domain::tries_again(job.spec.retry, failed, end_of(job, ended));
    if (job.spec.spot && is_internal(host.fault.value_or(Fault::algorithm))) return true;
    const AttemptEnd end{service_end_of(ended), "", ended.exit_code};
    return domain::tries_again(job.spec.retry, failed, end);
  }
  if (!is_internal(host.fault.value_or(Fault::algorithm))) return false;
  if (job.spec.spot) return true;
  return failed <= job.spec.retries_max;  // `failed` includes this attempt
}

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

void enter_stopped(Job& job, Instant at) {
  if (job.stop_cause == StopCause::max_runtime)
    enter(job, Phase::max_runtime_exceeded, contract::kMaxRuntimeExceeded, at);
  else if (job.stop_cause == StopCause::max_wait)
    enter(job, Phase::max_wait_time_exceeded, contract::kMaxWaitExceeded, at);
  else
    enter(job, Phase::stopped,
          job.stop_cause == StopCause::max_pending ? contract::kMaxPendingExceeded
                                                   : contract::kStopped,
          at);
  end_phases(job);
}

namespace {

// Returns true if every host had finished its work before the interruption. (A host that failed and
// is retried may have ended before its agent received the order.)
bool done_all_the_same(const Job& job, const Attempt& attempt) {
  const auto done = [](const Host& host) {
    return host.state == HostState::finished && host.stopped == StopCause::none;
  };
  if (attempt.first_failed) return false;
  if (const auto main = job.spec.main_host()) return done(attempt.hosts[*main]);
  return std::ranges::all_of(attempt.hosts, done);
}

// Determines the host whose failure counts. A rank that loses a peer fails too, and may be reported
// first. So once all hosts have reported, a fault of the platform takes precedence.
void look_for_faults_of_ours(Job& job, Attempt& attempt, Instant at) {
  if (!attempt.first_failed || !attempt.interruption.empty() || job.spec.queue) return;
  for (HostIndex index = 0; index < attempt.hosts.size(); ++index) {
    if (!tries_again(job, attempt, attempt.hosts[index])) continue;
    attempt.interruption = failure_reason(attempt, index);
    if (job.spec.spot)
      enter(job, Phase::interrupted, std::string(kInterrupted) + attempt.interruption, at);
    return;
  }
}

// Returns why a job whose attempt was interrupted gets no other attempt; "" if it gets one.
std::string no_further_attempt(const Job& job, const Attempt& attempt) {
  const std::string last = ", the last time: " + attempt.interruption;
  if (job.attempts.size() >= kAttemptsMax)
    return std::string(contract::kInternalServerError) + "it was interrupted " +
           std::to_string(kAttemptsMax) + " times" + last;
  if (job.spec.contract == Contract::plain && attempt.interrupted) {
    const AttemptEnd end = end_of(job, attempt);
    if (ends_with_interruption(job.spec.retry, end))
      return std::string(contract::kClientError) +
             "it was interrupted, and a rule of its evaluateOnExit says EXIT then: " +
             attempt.interruption;
    if (attempt.spot && !attempt.preempted &&
        !domain::tries_again(job.spec.retry, failed_attempts(job), end))
      return attempt.interruption;
  }
  if (!attempt.preempted || !job.spec.queue || !job.spec.queue->preemptions_max) return "";
  const auto preempted = std::ranges::count_if(job.attempts, &Attempt::preempted);
  if (preempted <= int64_t(*job.spec.queue->preemptions_max)) return "";
  return std::string(contract::kClientError) + "it was preempted " + std::to_string(preempted) +
         (preempted == 1 ? " time" : " times") +
         ", and its preemptionRetriesBeforeTermination is " +
         std::to_string(*job.spec.queue->preemptions_max) + last;
}

// Makes the job wait for its next attempt after an interruption.
void wait_again(Job& job, const Attempt& attempt, Instant at) {
  move(job.state, JobEvent::retry);
  job.stop_cause = StopCause::none;
  job.model_uri.clear();
  job.output_uri.clear();
  if (job.phase() != Phase::interrupted)
    enter(job, Phase::starting, std::string(contract::kReplacing) + " " + attempt.interruption, at);
}

// Ends the attempt, whose hosts have all ended, and the job, unless it gets another attempt.
void finish(Job& job, Attempt& attempt, Instant at) {
  if (attempt.state != AttemptState::draining) move(attempt.state, AttemptEvent::drain);
  move(attempt.state, AttemptEvent::end);
  attempt.ended = at;
  note_end(attempt, attempt.hosts[attempt.first_failed.value_or(job.spec.main_host().value_or(0))]);
  look_for_faults_of_ours(job, attempt, at);
  const bool taken_away = !attempt.interruption.empty() && !done_all_the_same(job, attempt);
  const std::string no_further = taken_away ? no_further_attempt(job, attempt) : "";
  if (taken_away && job.state == JobState::active && no_further.empty())
    return wait_again(job, attempt, at);
  if (job.training_start) job.training_end = std::max(at, *job.training_start);
  leave_pool(job,
             std::ranges::none_of(attempt.hosts,
                                  [](const Host& host) { return host.state == HostState::lost; }),
             at);
  if (job.stop_cause != StopCause::none && (taken_away || !attempt.first_failed)) {
    move(job.state, JobEvent::finish_stopped);
    return enter_stopped(job, at);
  }
  if (attempt.first_failed || taken_away) {
    job.failure_reason = attempt.first_failed ? failure_reason(attempt, *attempt.first_failed)
                                              : shorten(no_further, kFailureReasonBytesMax);
    move(job.state, JobEvent::fail);
    enter(job, Phase::failed, job.failure_reason, at);
  } else {
    move(job.state, JobEvent::complete);
    enter(job, Phase::completed, contract::kCompleted, at);
  }
  end_phases(job);
}

}  // namespace

void update_from_hosts(Job& job, Attempt& attempt, Instant happened, Instant at) {
  if (attempt.state == AttemptState::starting && every(job, attempt, HostState::running))
    move(attempt.state, AttemptEvent::run);
  if (attempt.state != AttemptState::draining && every(job, attempt, HostState::draining))
    move(attempt.state, AttemptEvent::drain);

  // While a gang is stopped, or ends because a host failed or was interrupted, users see the
  // previous phase until the attempt has ended.
  if (job.state == JobState::active && job.stop_cause == StopCause::none &&
      attempt.interruption.empty()) {
    if (every(job, attempt, HostState::uploading))
      enter(job, Phase::uploading, contract::kUploading, happened);
    else if (every(job, attempt, HostState::running)) {
      // Set only once, so that it does not replace later messages of hosts.
      if (job.phase() != Phase::training)
        enter(job, Phase::training, contract::kTraining, happened);
    } else if (job.phase() != Phase::downloading &&
               std::ranges::any_of(attempt.hosts, [](const Host& host) {
                 return host.state >= HostState::downloading;
               }))
      enter(job, Phase::downloading, contract::kDownloading, happened);
  }
  if (every_final(attempt)) finish(job, attempt, at);
}

}  // namespace trainyard::reconcile
