// Defines the states of jobs, attempts and hosts, and their transitions: next() returns the new
// state, or an error if the transition is not allowed. A test checks all pairs.
//
//   job       waiting  --place-->  active
//             waiting  --stop-->   stopped
//             waiting  --fail-->   failed (it cannot be planned)
//             active   --finish--> completed | failed | stopped
//             active   --retry-->  waiting (for its next attempt)
//             active   --stop-->   stopping
//             stopping --finish--> stopped | completed | failed
//
//   attempt   starting --run--> running --drain--> draining --end--> ended
//             starting --drain--> draining (stopped or failed before all hosts ran)
//             starting | running | draining --lose--> ended (agent or machine lost)
//
//   host      placed -> preparing -> downloading -> running -> draining -> uploading -> finished
//             each of these except finished -> failed (reported by its agent)
//             each of these except finished -> lost (its agent was lost)
//
// Threads: pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::domain {

enum class JobState { waiting, active, stopping, completed, failed, stopped };
enum class JobEvent { place, stop, complete, fail, finish_stopped, retry };

enum class AttemptState { starting, running, draining, ended };
enum class AttemptEvent { run, drain, end, lose };

// The agent of the host reports each state, except `lost`, which the launcher reports. The states
// are in the order in which a host reaches them, because next() compares states.
enum class HostState {
  placed,
  preparing,
  downloading,
  running,
  draining,
  uploading,
  finished,
  failed,
  lost
};

// The phase that users see (SecondaryStatus).
enum class Phase {
  starting,
  pending,
  downloading,
  training,
  uploading,
  interrupted,
  restarting,
  stopping,
  completed,
  failed,
  stopped,
  max_runtime_exceeded,
  max_wait_time_exceeded,
};

// The cause of a stop. interrupted: only the checkpoints of the attempt are kept, and another
// attempt follows. main_ended: a host was stopped because the main host of its job has ended.
enum class StopCause {
  none,
  user,
  max_runtime,
  max_wait,
  host_failed,
  interrupted,
  max_pending,
  main_ended
};

// The state of the hosts that a finished job keeps for the next matching job. reused and terminated
// are final.
//
//   in_use    --finish--> available --reuse--> reused
//   in_use    --finish without hosts--> terminated
//   available --keep-alive time is over--> terminated
enum class WarmPoolState { in_use, available, reused, terminated };

// The cause of a failure. It determines the first word of FailureReason (AlgorithmError,
// ClientError, InternalServerError). lost: the host or its container runtime was lost; this counts
// as internal.
enum class Fault { algorithm, client, internal, lost };
inline bool is_internal(Fault fault) { return fault == Fault::internal || fault == Fault::lost; }

std::string_view to_string(JobState);
std::string_view to_string(AttemptState);
std::string_view to_string(HostState);
std::string_view to_string(Phase);  // as in AWS: "Starting", "MaxRuntimeExceeded"
std::string_view to_string(StopCause);
std::string_view to_string(Fault);
std::string_view to_string(WarmPoolState);  // as in AWS: "InUse"
Result<JobState> parse_job_state(std::string_view);
Result<AttemptState> parse_attempt_state(std::string_view);
Result<HostState> parse_host_state(std::string_view);
Result<Phase> parse_phase(std::string_view);
Result<StopCause> parse_stop_cause(std::string_view);
Result<Fault> parse_fault(std::string_view);
Result<WarmPoolState> parse_warm_pool_state(std::string_view);

bool is_final(JobState);
bool is_final(HostState);

// Return the new state. Errors: conflict, with both arguments.
Result<JobState> next(JobState, JobEvent);
Result<AttemptState> next(AttemptState, AttemptEvent);
// Hosts may skip states (a job without channels has nothing to download) but never go back.
Result<HostState> next(HostState from, HostState to);

}  // namespace trainyard::domain
