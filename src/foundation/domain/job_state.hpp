// Defines the states of jobs, attempts and hosts, and their transitions: next() returns the new
// state, or an error if the transition is not allowed. A test checks all pairs.
//
//   job       waiting --place--> active --finish--> completed | failed | stopped waiting --stop-->
//             stopped, --fail--> failed (cannot be planned)   active --stop--> stopping stopping
//             --finish--> stopped | completed | failed   active --retry--> waiting (next attempt)
//
//   attempt   starting --run--> running --drain--> draining --end--> ended
//             starting --drain--> draining   (stopped or failed before every host ran)
//             any but ended --lose--> ended  (agent or machine gone)
//
//   host      placed -> preparing -> downloading -> running -> draining -> uploading -> finished
//             any of these except finished -> failed (reported by its agent) or lost (its agent is
//             gone); finished, failed and lost are final
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

// A fact of that name from the host's agent leads to each state, except `lost`, which the launcher
// reports. They are in the order of a host's life, since next() compares states.
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

// The cause of a stop. Of an interrupted attempt only the checkpoints are kept, and another attempt
// follows. main_ended is for single hosts: the main host, which they follow, has ended.
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

// The state of the hosts that a finished job keeps for the next job that matches. The last two are
// final.
//
//   in_use --finish--> available --reuse--> reused
//     finish without hosts, or keep-alive time over --> terminated
enum class WarmPoolState { in_use, available, reused, terminated };

// The cause of a failure. It decides the first word of FailureReason (AlgorithmError, ClientError,
// InternalServerError). `lost`: the host, or the container runtime on it, is gone; this counts as
// internal as well.
enum class Fault { algorithm, client, internal, lost };
inline bool is_ours(Fault fault) { return fault == Fault::internal || fault == Fault::lost; }

std::string_view to_string(JobState);
std::string_view to_string(AttemptState);
std::string_view to_string(HostState);
std::string_view to_string(Phase);  // as AWS writes it: "Starting", "MaxRuntimeExceeded"
std::string_view to_string(StopCause);
std::string_view to_string(Fault);
std::string_view to_string(WarmPoolState);  // as AWS writes it: "InUse"
Result<JobState> parse_job_state(std::string_view);
Result<AttemptState> parse_attempt_state(std::string_view);
Result<HostState> parse_host_state(std::string_view);
Result<Phase> parse_phase(std::string_view);
Result<StopCause> parse_stop_cause(std::string_view);
Result<Fault> parse_fault(std::string_view);
Result<WarmPoolState> parse_warm_pool_state(std::string_view);

bool is_final(JobState);
bool is_final(HostState);

// Errors: conflict, naming both arguments.
Result<JobState> next(JobState, JobEvent);
Result<AttemptState> next(AttemptState, AttemptEvent);
// Hosts may skip states (a job without channels has nothing to download) but never go back.
Result<HostState> next(HostState from, HostState to);

}  // namespace trainyard::domain
