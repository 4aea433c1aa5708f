#include "events/job_event.hpp"

#include <algorithm>
#include <utility>

#include "batch_api/conversions.hpp"
#include "control/control.hpp"
#include "protocol/json.hpp"
#include "sagemaker/training_job.hpp"
#include "shapes/batch.hpp"
#include "shapes/sagemaker.hpp"

namespace trainyard::api::events {
namespace {

bool is_training_job(const domain::Job& job) {
  return job.spec.contract == domain::Contract::training;
}

// Times in events are milliseconds since 1970, and those of SageMaker's API are seconds.
void use_milliseconds(Json& json) {
  if (json.is_array())
    for (Json& each : json) use_milliseconds(each);
  if (!json.is_object()) return;
  for (auto& [name, value] : json.items()) {
    if (value.is_number() && name.ends_with("Time"))
      value = int64_t(value.get<double>() * 1000 + 0.5);
    else
      use_milliseconds(value);
  }
}

Result<Json> training_detail(const domain::Job& job, Instant now) {
  auto described = TRY(sagemaker::echo_of(job));
  sagemaker::describe(job, now, described);
  std::string text;
  write_json(*shapes::sagemaker::DescribeTrainingJob::shape().output, &described, text);
  Json detail = TRY(parse_json(text));
  detail.erase("Environment");
  use_milliseconds(detail);
  return detail;
}

Result<Json> batch_detail(const domain::Job& job) {
  const auto described = TRY(batch_api::describe(job));
  const auto& jobs = *std::ranges::find(shapes::batch::DescribeJobs::shape().output->members,
                                        "jobs", &shapes::Member::name)
                          ->shape;
  std::string text;
  write_json(*jobs.element, &described, text);
  Json detail = TRY(parse_json(text));
  if (detail.contains("container")) detail["container"].erase("environment");
  detail.erase("nodeProperties");
  return detail;
}

notify::Event event_of(const domain::Job& job, const char* source, const char* type, Instant time,
                       Json detail) {
  notify::Event event;
  event.region = job.key.region;
  event.source = source;
  event.detail_type = type;
  event.time = time;
  event.resources = {control::job_arn(job)};
  event.detail = std::move(detail);
  return event;
}

// Returns the job's status in an earlier phase.
std::string_view status_in(domain::Phase phase) {
  return phase == domain::Phase::stopping ? "Stopping" : "InProgress";
}

Result<std::vector<notify::Event>> training_events(const domain::Job& job, size_t announced,
                                                   Instant now) {
  std::vector<notify::Event> events;
  const auto& phases = job.transitions;
  if (announced >= phases.size()) return events;
  const Json detail = TRY(training_detail(job, now));
  for (size_t i = announced; i < phases.size(); ++i) {
    Json of_phase = detail;
    of_phase["SecondaryStatus"] = domain::to_string(phases[i].phase);
    if (i + 1 < phases.size()) of_phase["TrainingJobStatus"] = status_in(phases[i].phase);
    events.push_back(event_of(job, "aws.sagemaker", "SageMaker Training Job State Change",
                              phases[i].start, std::move(of_phase)));
  }
  return events;
}

}  // namespace

Announced announced_of(const domain::Job& job, Instant now) {
  Announced out;
  if (is_training_job(job))
    out.phases = job.transitions.size();
  else if (job.spec.queue)
    out.status = batch_api::summary_of_batch(job).status.value_or("");
  if (job.finished()) out.over = now;
  return out;
}

Result<std::vector<notify::Event>> due_events(const domain::Job& job, const Announced& before,
                                              Instant now) {
  if (is_training_job(job)) return training_events(job, before.phases, now);
  std::vector<notify::Event> events;
  const Announced after = announced_of(job, now);
  if (!job.spec.queue || after.status == before.status) return events;
  Json detail = TRY(batch_detail(job));
  events.push_back(
      event_of(job, "aws.batch", "Batch Job State Change", job.modified, std::move(detail)));
  return events;
}

notify::Event fault_event(const domain::Job& job, const diagnosis::FaultNews& news, Instant now) {
  const diagnosis::RankFault& fault = news.fault;
  Json detail{{"JobName", job.key.name},
              {"Fault", diagnosis::to_string(fault.kind)},
              {"State", news.begins ? "Begun" : "Ended"},
              {"Host", domain::host_name(fault.host)},
              {"Rank", fault.rank},
              {"Message", fault.text}};
  if (fault.peer) detail["PeerRank"] = *fault.peer;
  if (!news.begins) detail["Seconds"] = news.lasted.count() / 1000;
  return event_of(job, kOwnSource, "Training Job Rank Fault", now, std::move(detail));
}

}  // namespace trainyard::api::events
