#include "trainyard/monitoring/alarm_actions.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace trainyard::apps {
namespace {

constexpr std::chrono::seconds kStopTimeout{30};  // until the stop is durable

struct JobArn {
  domain::JobKey key;
  std::string account;
};

std::optional<JobArn> job_in(std::string_view arn) {
  // arn:aws:sagemaker:REGION:ACCOUNT:training-job/NAME
  constexpr std::string_view kResource = "training-job/";
  const auto parts = split(arn, ':');
  if (parts.size() != 6 || parts[0] != "arn" || parts[1] != "aws" || parts[2] != "sagemaker" ||
      !parts[5].starts_with(kResource))
    return {};
  return JobArn{{std::string(parts[3]), std::string(parts[5].substr(kResource.size()))},
                std::string(parts[4])};
}

// Stops a training job. A job that has ended is unchanged.
Result<void> stop_job(control::Control& control, const domain::JobKey& key) {
  const auto found = control.find(key);
  if (!found) return found.error();
  // The ARN names training jobs, which Batch jobs are not.
  if ((*found)->spec.contract == domain::Contract::plain)
    return not_found("training job not found");
  auto promise = std::make_shared<std::promise<Result<domain::Job>>>();
  auto answered = promise->get_future();
  control.stop_job(key, [promise](auto answer) { promise->set_value(std::move(answer)); });
  if (answered.wait_for(kStopTimeout) != std::future_status::ready)
    return unavailable("stopping the job timed out");
  const auto answer = answered.get();
  if (answer || answer.error().kind == Kind::conflict) return ok();
  return answer.error();
}

}  // namespace

alarms::Sink make_alarm_sink(control::Control& control, std::string account,
                             alarms::Sink notifications) {
  return [&control, account = std::move(account), notifications = std::move(notifications)](
             const alarms::PendingAction& action) -> Result<void> {
    if (action.target == alarms::kEventBus) return notifications ? notifications(action) : ok();
    if (const auto job = job_in(action.target)) {
      if (job->account != account) return invalid("the job belongs to another account");
      return stop_job(control, job->key);
    }
    const auto parts = split(action.target, ':');
    if (parts.size() > 2 && parts[2] == "sns") {
      if (!notifications) return invalid("this server has no topics");
      return notifications(action);
    }
    return invalid("unknown kind of action '" + shorten(action.target, 200) +
                   "': use the ARN of a topic or of a training job");
  };
}

}  // namespace trainyard::apps
