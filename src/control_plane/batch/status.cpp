#include "batch/status.hpp"

#include "base/check.hpp"
#include "base/enum_table.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "contract/failure_text.hpp"
#include "domain/array.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

constexpr std::string_view kContainerExited = "Essential container in task exited";
constexpr std::string_view kOutOfMemory = "OutOfMemory";
constexpr size_t kCauseBytesMax = 300;
constexpr size_t kInstanceDigits = 17;  // hex digits of an instance's id, as AWS
constexpr EnumTable<Stage> kStatusNames{"status of jobs",
                                        {{Stage::submitted, "SUBMITTED"},
                                         {Stage::pending, "PENDING"},
                                         {Stage::runnable, "RUNNABLE"},
                                         {Stage::starting, "STARTING"},
                                         {Stage::running, "RUNNING"},
                                         {Stage::succeeded, "SUCCEEDED"},
                                         {Stage::failed, "FAILED"}}};

// Returns the id of an instance, as in AWS's text. It is derived from the machine's name, so that a
// machine always has the same id.
std::string host_terminated(const std::string& machine) {
  const std::string id =
      machine.empty() ? "" : " i-" + to_hex(bytes_of(sha256(machine))).substr(0, kInstanceDigits);
  return "Host EC2 (instance" + id + ") terminated.";
}

std::string status_reason_of(Fault fault, const std::optional<int>& exit_code,
                             const std::string& machine) {
  switch (fault) {
    case Fault::lost:
      return host_terminated(machine);
    case Fault::internal:
      if (exit_code) return "Task stopped by an internal error";
      [[fallthrough]];
    case Fault::client:
      return "Task failed to start";
    case Fault::algorithm:
      break;
  }
  return std::string(kContainerExited);
}

// Appends the memory limit or the signal that ended the container to AWS's text, which lacks it.
std::string with_cause(std::string status_reason, const std::optional<int>& exit_code,
                       const std::string& failure) {
  if (status_reason != kContainerExited || !exit_code) return status_reason;
  const std::string cause = failure.starts_with(kOutOfMemory)
                                ? shorten(failure.substr(0, failure.find('\n')), kCauseBytesMax)
                                : contract::describe_signal(*exit_code);
  return cause.empty() ? status_reason : status_reason + ": " + cause;
}

// Returns the reason of a job that was stopped early; "" for other jobs.
std::string reason_of_stop(const Job& job) {
  if (job.cancellation != Cancellation::no) return job.cancellation_reason;
  return job.stop_cause == StopCause::max_runtime ? "Job attempt duration exceeded timeout" : "";
}

}  // namespace

std::string_view status_name(Stage stage) { return kStatusNames.text(stage); }

Stage node_status(const Job& job, HostIndex host) {
  CHECK(host < job.spec.hosts(), "the job has such a host");
  const Attempt* attempt = job.attempt();
  if (job.state == JobState::waiting || !attempt || host >= attempt->hosts.size())
    return stage_of(job);
  const Host& own = attempt->hosts[host];
  // The end of hosts that follow the main host is ignored, since they are stopped when the main
  // host ends.
  switch (own.state) {
    case HostState::placed:
    case HostState::preparing:
    case HostState::downloading:
      return job.finished() ? Stage::failed : Stage::starting;
    case HostState::running:
    case HostState::draining:
    case HostState::uploading:
      return Stage::running;
    case HostState::finished:
      if (job.spec.decides(host) && job.finished()) return stage_of(job);
      return own.stopped == StopCause::none || own.stopped == StopCause::main_ended
                 ? Stage::succeeded
                 : Stage::failed;
    case HostState::failed:
    case HostState::lost:
      break;
  }
  return Stage::failed;
}

std::string node_status_reason(const Job& job, HostIndex host) {
  const Attempt* attempt = job.attempt();
  if (job.spec.decides(host) || !attempt || host >= attempt->hosts.size() ||
      job.state == JobState::waiting)
    return status_reason(job);
  const Host& own = attempt->hosts[host];
  if (own.stopped == StopCause::main_ended) return "Main node of the job has ended";
  if (!is_final(own.state)) {
    const bool waits = own.state < HostState::running;
    return waits ? "starts when the main node of the job runs" : "";
  }
  return with_cause(
      status_reason_of(own.fault.value_or(Fault::algorithm), own.exit_code, own.machine),
      own.exit_code, own.failure);
}

std::string container_reason(Fault fault, const std::string& failure) {
  if (fault != Fault::algorithm) return failure;
  return failure.starts_with(kOutOfMemory)
             ? "OutOfMemoryError: Container killed due to memory usage"
             : "";
}

AttemptEnd end_of(const Job& job, const Attempt& attempt) {
  AttemptEnd end;
  end.exit_code = attempt.exit_code;
  const bool last = job.attempt() && job.attempt()->number == attempt.number;
  // An attempt that completed despite an interruption was not terminated.
  if (attempt.interrupted && !(last && job.state == JobState::completed)) {
    end.status_reason = host_terminated(attempt.machine);
    end.reason = attempt.interruption;
    return end;
  }
  const Fault fault = attempt.fault.value_or(Fault::algorithm);
  end.status_reason = status_reason_of(fault, attempt.exit_code, attempt.machine);
  end.reason = container_reason(fault, attempt.failure);
  // The stop of the job ended only the last attempt.
  const bool stop_requested =
      job.stop_cause != StopCause::none && job.stop_cause != StopCause::host_failed;
  if (last && stop_requested && attempt.interruption.empty())
    if (std::string reason = reason_of_stop(job); !reason.empty())
      end.status_reason = std::move(reason);
  return end;
}

std::string status_reason(const Job& job) {
  if (job.state == JobState::waiting && !job.wait_reason.empty()) return job.wait_reason;
  if (std::string reason = reason_of_stop(job); !reason.empty()) return reason;
  const Attempt* attempt = job.attempt();
  if (job.is_array() && job.state == JobState::failed) return "Array Child Job failed";
  if (!attempt || !attempt->ended) return "";
  return attempt_status_reason(job, *attempt);
}

std::string attempt_status_reason(const Job& job, const Attempt& attempt) {
  const AttemptEnd end = end_of(job, attempt);
  return with_cause(end.status_reason, end.exit_code, attempt.failure);
}

}  // namespace trainyard::batch
