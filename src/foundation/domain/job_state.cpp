#include "domain/job_state.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"

namespace trainyard::domain {
namespace {

// The texts of an enum's values.
template <class T, size_t n>
using Names = std::array<std::pair<T, std::string_view>, n>;

constexpr Names<JobState, 6> kJobStates{{{JobState::waiting, "waiting"},
                                         {JobState::active, "active"},
                                         {JobState::stopping, "stopping"},
                                         {JobState::completed, "completed"},
                                         {JobState::failed, "failed"},
                                         {JobState::stopped, "stopped"}}};
constexpr Names<JobEvent, 6> kJobEvents{{{JobEvent::place, "place"},
                                         {JobEvent::stop, "stop"},
                                         {JobEvent::complete, "complete"},
                                         {JobEvent::fail, "fail"},
                                         {JobEvent::finish_stopped, "finish_stopped"},
                                         {JobEvent::retry, "retry"}}};
constexpr Names<AttemptState, 4> kAttemptStates{{{AttemptState::starting, "starting"},
                                                 {AttemptState::running, "running"},
                                                 {AttemptState::draining, "draining"},
                                                 {AttemptState::ended, "ended"}}};
constexpr Names<AttemptEvent, 4> kAttemptEvents{{{AttemptEvent::run, "run"},
                                                 {AttemptEvent::drain, "drain"},
                                                 {AttemptEvent::end, "end"},
                                                 {AttemptEvent::lose, "lose"}}};
constexpr Names<HostState, 9> kHostStates{{{HostState::placed, "placed"},
                                           {HostState::preparing, "preparing"},
                                           {HostState::downloading, "downloading"},
                                           {HostState::running, "running"},
                                           {HostState::draining, "draining"},
                                           {HostState::uploading, "uploading"},
                                           {HostState::finished, "finished"},
                                           {HostState::failed, "failed"},
                                           {HostState::lost, "lost"}}};
constexpr Names<Phase, 13> kPhases{{{Phase::starting, "Starting"},
                                    {Phase::pending, "Pending"},
                                    {Phase::downloading, "Downloading"},
                                    {Phase::training, "Training"},
                                    {Phase::uploading, "Uploading"},
                                    {Phase::interrupted, "Interrupted"},
                                    {Phase::restarting, "Restarting"},
                                    {Phase::stopping, "Stopping"},
                                    {Phase::completed, "Completed"},
                                    {Phase::failed, "Failed"},
                                    {Phase::stopped, "Stopped"},
                                    {Phase::max_runtime_exceeded, "MaxRuntimeExceeded"},
                                    {Phase::max_wait_time_exceeded, "MaxWaitTimeExceeded"}}};
constexpr Names<StopCause, 8> kStopCauses{{{StopCause::none, "none"},
                                           {StopCause::user, "user"},
                                           {StopCause::max_runtime, "max_runtime"},
                                           {StopCause::max_wait, "max_wait"},
                                           {StopCause::host_failed, "host_failed"},
                                           {StopCause::interrupted, "interrupted"},
                                           {StopCause::max_pending, "max_pending"},
                                           {StopCause::main_ended, "main_ended"}}};
constexpr Names<Fault, 4> kFaults{{{Fault::algorithm, "algorithm"},
                                   {Fault::client, "client"},
                                   {Fault::internal, "internal"},
                                   {Fault::lost, "lost"}}};
constexpr Names<WarmPoolState, 4> kWarmPoolStates{{{WarmPoolState::in_use, "InUse"},
                                                   {WarmPoolState::available, "Available"},
                                                   {WarmPoolState::reused, "Reused"},
                                                   {WarmPoolState::terminated, "Terminated"}}};

template <class T, size_t n>
std::string_view name_of(const Names<T, n>& names, T value) {
  for (const auto& [each, name] : names)
    if (each == value) return name;
  return "unknown";
}

template <class T, size_t n>
Result<T> value_of(const Names<T, n>& names, std::string_view text, std::string_view set) {
  for (const auto& [each, name] : names)
    if (name == text) return each;
  return invalid("'" + shorten(text, 60) + "' is not a " + std::string(set));
}

Error illegal(std::string_view resource, std::string_view state, std::string_view event) {
  return conflict("a " + std::string(resource) + " that is " + std::string(state) + " cannot " +
                  std::string(event));
}

}  // namespace

std::string_view to_string(JobState state) { return name_of(kJobStates, state); }
std::string_view to_string(AttemptState state) { return name_of(kAttemptStates, state); }
std::string_view to_string(HostState state) { return name_of(kHostStates, state); }
std::string_view to_string(Phase phase) { return name_of(kPhases, phase); }
std::string_view to_string(StopCause cause) { return name_of(kStopCauses, cause); }
std::string_view to_string(Fault fault) { return name_of(kFaults, fault); }
std::string_view to_string(WarmPoolState state) { return name_of(kWarmPoolStates, state); }

Result<JobState> parse_job_state(std::string_view text) { return value_of(kJobStates, text, "job state"); }
Result<AttemptState> parse_attempt_state(std::string_view text) {
  return value_of(kAttemptStates, text, "attempt state");
}
Result<HostState> parse_host_state(std::string_view text) {
  return value_of(kHostStates, text, "host state");
}
Result<Phase> parse_phase(std::string_view text) { return value_of(kPhases, text, "phase"); }
Result<StopCause> parse_stop_cause(std::string_view text) {
  return value_of(kStopCauses, text, "stop cause");
}
Result<Fault> parse_fault(std::string_view text) { return value_of(kFaults, text, "fault"); }
Result<WarmPoolState> parse_warm_pool_state(std::string_view text) {
  return value_of(kWarmPoolStates, text, "state of a warm pool");
}

bool is_final(JobState state) {
  return state == JobState::completed || state == JobState::failed || state == JobState::stopped;
}

bool is_final(HostState state) {
  return state == HostState::finished || state == HostState::failed || state == HostState::lost;
}

Result<JobState> next(JobState state, JobEvent event) {
  switch (state) {
    case JobState::waiting:
      if (event == JobEvent::place) return JobState::active;
      if (event == JobEvent::stop) return JobState::stopped;
      if (event == JobEvent::fail) return JobState::failed;
      break;
    case JobState::active:
      if (event == JobEvent::stop) return JobState::stopping;
      if (event == JobEvent::retry) return JobState::waiting;
      [[fallthrough]];
    case JobState::stopping:
      if (event == JobEvent::complete) return JobState::completed;
      if (event == JobEvent::fail) return JobState::failed;
      if (event == JobEvent::finish_stopped) return JobState::stopped;
      break;
    case JobState::completed:
    case JobState::failed:
    case JobState::stopped:
      break;
  }
  return illegal("job", to_string(state), name_of(kJobEvents, event));
}

Result<AttemptState> next(AttemptState state, AttemptEvent event) {
  if (state != AttemptState::ended) {
    if (event == AttemptEvent::lose) return AttemptState::ended;
    if (event == AttemptEvent::run && state == AttemptState::starting) return AttemptState::running;
    if (event == AttemptEvent::drain && state != AttemptState::draining) return AttemptState::draining;
    if (event == AttemptEvent::end && state == AttemptState::draining) return AttemptState::ended;
  }
  return illegal("attempt", to_string(state), name_of(kAttemptEvents, event));
}

Result<HostState> next(HostState from, HostState to) {
  if (!is_final(from) && (to > from)) return to;
  return illegal("host", to_string(from), "become " + std::string(to_string(to)));
}

}  // namespace trainyard::domain
