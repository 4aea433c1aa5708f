#include "batch/service_job.hpp"

#include <algorithm>

#include "base/enum_table.hpp"

namespace trainyard::batch {

using namespace domain;

namespace {

constexpr EnumTable<ServiceStatus> kServiceStatuses{"status of service jobs",
                                                    {{ServiceStatus::submitted, "SUBMITTED"},
                                                     {ServiceStatus::pending, "PENDING"},
                                                     {ServiceStatus::runnable, "RUNNABLE"},
                                                     {ServiceStatus::scheduled, "SCHEDULED"},
                                                     {ServiceStatus::starting, "STARTING"},
                                                     {ServiceStatus::running, "RUNNING"},
                                                     {ServiceStatus::succeeded, "SUCCEEDED"},
                                                     {ServiceStatus::failed, "FAILED"}}};
constexpr std::string_view kReceived = "Received status from SageMaker:";

}  // namespace

std::string_view to_string(ServiceStatus status) { return kServiceStatuses.text(status); }

ServiceStatus service_status(const Job& job) {
  switch (job.state) {
    case JobState::waiting:
      return ServiceStatus::runnable;
    case JobState::active:
    case JobState::stopping:
      break;
    case JobState::completed:
      return ServiceStatus::succeeded;
    case JobState::failed:
    case JobState::stopped:
      return ServiceStatus::failed;
  }
  const Attempt* attempt = job.attempt();
  if (!attempt) return ServiceStatus::scheduled;
  if (attempt->training_started) return ServiceStatus::running;
  const bool begun = std::ranges::any_of(
      attempt->hosts, [](const Host& host) { return host.state != HostState::placed; });
  return begun ? ServiceStatus::starting : ServiceStatus::scheduled;
}

std::vector<JobState> states_of(ServiceStatus status) {
  switch (status) {
    case ServiceStatus::submitted:
    case ServiceStatus::pending:
      return {};
    case ServiceStatus::runnable:
      return {JobState::waiting};
    case ServiceStatus::scheduled:
    case ServiceStatus::starting:
    case ServiceStatus::running:
      return {JobState::active, JobState::stopping};
    case ServiceStatus::succeeded:
      return {JobState::completed};
    case ServiceStatus::failed:
      break;
  }
  return {JobState::failed, JobState::stopped};
}

std::string service_end_of(const Attempt& attempt) {
  const std::string text =
      attempt.failure.empty() ? "the training process failed" : attempt.failure;
  const std::string received(kReceived);
  switch (attempt.fault.value_or(Fault::algorithm)) {
    case Fault::internal:
    case Fault::lost:
      return received + "InternalServerError: We encountered an internal error. Please try again.";
    case Fault::client:
      return received + "ClientError: " + text;
    case Fault::algorithm:
      break;
  }
  if (attempt.failure.empty() && attempt.exit_code.value_or(0) == 0) return received + "Completed";
  return received + "AlgorithmError: " + text +
         (attempt.exit_code ? ", exit code: " + std::to_string(*attempt.exit_code) : "");
}

std::string service_status_reason(const Job& job) {
  if (job.state == JobState::waiting && !job.wait_reason.empty()) return job.wait_reason;
  if (job.cancellation != Cancellation::no) return job.cancellation_reason;
  if (job.stop_cause == StopCause::max_runtime) return "Job attempt duration exceeded timeout";
  if (job.state == JobState::stopped) return std::string(kReceived) + "Stopped";
  const Attempt* attempt = job.attempt();
  return attempt && attempt->ended ? service_end_of(*attempt) : "";
}

}  // namespace trainyard::batch
