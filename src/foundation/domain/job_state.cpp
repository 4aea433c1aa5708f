#include "domain/job_state.hpp"

#include "base/enum_table.hpp"

namespace trainyard::domain {
namespace {

constexpr EnumTable<JobState> kJobStates{"job state",
                                         {{JobState::waiting, "waiting"},
                                          {JobState::active, "active"},
                                          {JobState::stopping, "stopping"},
                                          {JobState::completed, "completed"},
                                          {JobState::failed, "failed"},
                                          {JobState::stopped, "stopped"}}};
constexpr EnumTable<JobEvent> kJobEvents{"job event",
                                         {{JobEvent::place, "place"},
                                          {JobEvent::stop, "stop"},
                                          {JobEvent::complete, "complete"},
                                          {JobEvent::fail, "fail"},
                                          {JobEvent::finish_stopped, "finish_stopped"},
                                          {JobEvent::retry, "retry"}}};
constexpr EnumTable<AttemptState> kAttemptStates{"attempt state",
                                                 {{AttemptState::starting, "starting"},
                                                  {AttemptState::running, "running"},
                                                  {AttemptState::draining, "draining"},
                                                  {AttemptState::ended, "ended"}}};
constexpr EnumTable<AttemptEvent> kAttemptEvents{"attempt event",
                                                 {{AttemptEvent::run, "run"},
                                                  {AttemptEvent::drain, "drain"},
                                                  {AttemptEvent::end, "end"},
                                                  {AttemptEvent::lose, "lose"}}};
constexpr EnumTable<HostState> kHostStates{"host state",
                                           {{HostState::placed, "placed"},
                                            {HostState::preparing, "preparing"},
                                            {HostState::downloading, "downloading"},
                                            {HostState::running, "running"},
                                            {HostState::draining, "draining"},
                                            {HostState::uploading, "uploading"},
                                            {HostState::finished, "finished"},
                                            {HostState::failed, "failed"},
                                            {HostState::lost, "lost"}}};
constexpr EnumTable<Phase> kPhases{"phase",
                                   {{Phase::starting, "Starting"},
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
constexpr EnumTable<StopCause> kStopCauses{"stop cause",
                                           {{StopCause::none, "none"},
                                            {StopCause::user, "user"},
                                            {StopCause::max_runtime, "max_runtime"},
                                            {StopCause::max_wait, "max_wait"},
                                            {StopCause::host_failed, "host_failed"},
                                            {StopCause::interrupted, "interrupted"},
                                            {StopCause::max_pending, "max_pending"},
                                            {StopCause::main_ended, "main_ended"}}};
constexpr EnumTable<Fault> kFaults{"fault",
                                   {{Fault::algorithm, "algorithm"},
                                    {Fault::client, "client"},
                                    {Fault::internal, "internal"},
                                    {Fault::lost, "lost"}}};
constexpr EnumTable<WarmPoolState> kWarmPoolStates{"warm pool state",
                                                   {{WarmPoolState::in_use, "InUse"},
                                                    {WarmPoolState::available, "Available"},
                                                    {WarmPoolState::reused, "Reused"},
                                                    {WarmPoolState::terminated, "Terminated"}}};

Error illegal(std::string_view resource, std::string_view state, std::string_view event) {
  return conflict("a " + std::string(resource) + " that is " + std::string(state) + " cannot " +
                  std::string(event));
}

}  // namespace

std::string_view to_string(JobState state) { return kJobStates.text(state); }
std::string_view to_string(AttemptState state) { return kAttemptStates.text(state); }
std::string_view to_string(HostState state) { return kHostStates.text(state); }
std::string_view to_string(Phase phase) { return kPhases.text(phase); }
std::string_view to_string(StopCause cause) { return kStopCauses.text(cause); }
std::string_view to_string(Fault fault) { return kFaults.text(fault); }
std::string_view to_string(WarmPoolState state) { return kWarmPoolStates.text(state); }

Result<JobState> parse_job_state(std::string_view text) { return kJobStates.parse(text); }
Result<AttemptState> parse_attempt_state(std::string_view text) {
  return kAttemptStates.parse(text);
}
Result<HostState> parse_host_state(std::string_view text) { return kHostStates.parse(text); }
Result<Phase> parse_phase(std::string_view text) { return kPhases.parse(text); }
Result<StopCause> parse_stop_cause(std::string_view text) { return kStopCauses.parse(text); }
Result<Fault> parse_fault(std::string_view text) { return kFaults.parse(text); }
Result<WarmPoolState> parse_warm_pool_state(std::string_view text) {
  return kWarmPoolStates.parse(text);
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
  return illegal("job", to_string(state), kJobEvents.text(event));
}

Result<AttemptState> next(AttemptState state, AttemptEvent event) {
  if (state != AttemptState::ended) {
    if (event == AttemptEvent::lose) return AttemptState::ended;
    if (event == AttemptEvent::run && state == AttemptState::starting) return AttemptState::running;
    if (event == AttemptEvent::drain && state != AttemptState::draining)
      return AttemptState::draining;
    if (event == AttemptEvent::end && state == AttemptState::draining) return AttemptState::ended;
  }
  return illegal("attempt", to_string(state), kAttemptEvents.text(event));
}

Result<HostState> next(HostState from, HostState to) {
  if (!is_final(from) && (to > from)) return to;
  return illegal("host", to_string(from), "become " + std::string(to_string(to)));
}

}  // namespace trainyard::domain
