// Converts service jobs: requests to training jobs, and jobs to descriptions.
#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/limits.hpp"
#include "batch/policy.hpp"
#include "batch/service_job.hpp"
#include "batch_api/requests.hpp"
#include "batch_api/service.hpp"
#include "operations/listed_failure.hpp"
#include "protocol/json.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
namespace payload = shapes::sagemaker;

constexpr size_t kPreemptionsListed = 10;  // in recentPreemptedAttempts: the most recent ones

Failure of_payload(const std::string& message) {
  return client_exception("serviceRequestPayload: " + message);
}

// Reads the payload like the body of CreateTrainingJob, and makes its name unique.
Outcome<payload::CreateTrainingJobRequest> read_payload(const std::string& payload,
                                                        const std::string& unique,
                                                        const PayloadRules& rules) {
  if (payload.size() > kServicePayloadBytesMax)
    return client_exception("serviceRequestPayload has at most " +
                            std::to_string(kServicePayloadBytesMax) + " bytes");
  payload::CreateTrainingJobRequest training;
  const shapes::Shape& shape = *payload::CreateTrainingJob::shape().input;
  if (const auto read = read_json(shape, payload, &training); !read)
    return of_payload(read.error().message);
  if (const auto violations = rules.constraints.check(shape, &training))
    return of_payload(*violations);
  if (training.retry_strategy)
    return of_payload(
        "RetryStrategy is for CreateTrainingJob; give retryStrategy to SubmitServiceJob");
  std::string name = training.training_job_name->substr(0, kTrainingJobNameMax - 1 - unique.size());
  while (name.ends_with('-')) name.pop_back();
  training.training_job_name = name + "-" + unique;
  return training;
}

// Converts a service job's retry strategy to a container job's. Its rules have fewer conditions.
batch::RetryStrategy retries_of(const batch::ServiceJobRetryStrategy& strategy) {
  batch::RetryStrategy out;
  out.attempts = strategy.attempts;
  if (!strategy.evaluate_on_exit) return out;
  out.evaluate_on_exit.emplace();
  for (const auto& rule : *strategy.evaluate_on_exit) {
    auto& own = out.evaluate_on_exit->emplace_back();
    own.on_status_reason = rule.on_status_reason;
    own.action = rule.action.value_or("RETRY");
  }
  return out;
}

Outcome<Done> read_queue_position(const batch::SubmitServiceJobRequest& request,
                                  domain::QueueOptions& queue) {
  queue.priority = request.scheduling_priority.value_or(0);
  if (queue.priority < 0 || queue.priority > catalog::kSchedulingPriorityMax)
    return client_exception("schedulingPriority must be between 0 and " +
                            std::to_string(catalog::kSchedulingPriorityMax));
  if (request.share_identifier && request.quota_share_name)
    return client_exception("shareIdentifier and quotaShareName cannot be given together");
  if (request.share_identifier)
    TRY(check_share_identifier(*request.share_identifier, "shareIdentifier", false));
  queue.share = request.share_identifier.value_or("");
  queue.quota_share = request.quota_share_name.value_or("");
  if (!request.preemption_configuration) return Done{};
  if (queue.quota_share.empty())
    return client_exception(
        "preemptionConfiguration is for jobs of a quota share: quotaShareName is missing");
  const auto retries = request.preemption_configuration->preemption_retries_before_termination;
  if (retries && (*retries < 0 || *retries > UINT32_MAX))
    return client_exception("preemptionRetriesBeforeTermination must be 0 or more");
  if (retries) queue.preemptions_max = uint32_t(*retries);
  return Done{};
}

// Merges tags. Those of the payload override those of the request, as in the SageMaker SDK.
Outcome<std::vector<domain::Tag>> tags_of(const batch::SubmitServiceJobRequest& request,
                                          const payload::CreateTrainingJobRequest& training) {
  std::vector<domain::Tag> tags;
  if (training.tags) {
    auto own = sagemaker::tags_of(*training.tags);
    if (!own) return of_payload(own.failure(payload::kService).message);
    tags = *std::move(own);
  }
  for (auto& tag : TRY(batch_tags_in(request.tags)))
    if (std::ranges::find(tags, tag.key, &domain::Tag::key) == tags.end())
      tags.push_back(std::move(tag));
  return tags;
}

batch::ServiceResourceId resource_of(const domain::Job& job) {
  batch::ServiceResourceId id;
  id.name = "TrainingJobArn";
  id.value = control::job_arn(job);
  return id;
}

std::optional<batch::LatestServiceJobAttempt> latest_of(const domain::Job& job) {
  if (!job.attempt()) return std::nullopt;
  batch::LatestServiceJobAttempt latest;
  latest.service_resource_id = resource_of(job);
  return latest;
}

// Detail: ServiceJobAttemptDetail or ServiceJobPreemptedAttempt, which have the same members.
template <class Detail>
Detail describe_attempt(const domain::Job& job, const domain::Attempt& attempt,
                        std::string reason) {
  Detail detail;
  detail.service_resource_id = resource_of(job);
  if (attempt.training_started) detail.started_at = to_milliseconds(*attempt.training_started);
  detail.stopped_at = to_milliseconds(*attempt.ended);
  detail.status_reason = std::move(reason);
  return detail;
}

// The number of instances of a job, by instance type if the job is in a quota share.
std::map<std::string, double> capacity_of(const domain::Job& job) {
  std::map<std::string, double> instances;
  const bool by_type = !job.spec.queue->quota_share.empty();
  for (const domain::InstanceGroup& group : job.spec.groups)
    instances[by_type ? group.instance_type : std::string(catalog::kInstancesUnit)] += group.count;
  return instances;
}

// Sets the members that descriptions and summaries share.
template <class Detail>
void show(const domain::Job& job, Detail& detail) {
  detail.job_arn = service_job_arn(job);
  detail.job_id = job.key.name;
  detail.job_name = job.spec.display_name;
  detail.service_job_type = "SAGEMAKER_TRAINING";
  detail.share_identifier = unless_empty(job.spec.queue->share);
  detail.quota_share_name = unless_empty(job.spec.queue->quota_share);
  detail.status = catalog::to_string(catalog::service_status(job));
  detail.status_reason = unless_empty(catalog::service_status_reason(job));
  detail.is_terminated = job.cancellation == domain::Cancellation::terminated;
  detail.created_at = to_milliseconds(job.created);
  detail.latest_attempt = latest_of(job);
  if (!job.attempts.empty()) detail.scheduled_at = to_milliseconds(job.attempts.back().started);
  const domain::Attempt* attempt = job.attempt();
  if (attempt && attempt->training_started)
    detail.started_at = to_milliseconds(*attempt->training_started);
  if (job.finished())
    detail.stopped_at = to_milliseconds(attempt && attempt->ended ? *attempt->ended : job.modified);
}

}  // namespace

std::string service_job_arn(const domain::Job& job) {
  return catalog::arn_of(job.account, job.key.region, catalog::kServiceJobArn, job.key.name);
}

Outcome<ServiceJob> service_job_of(const batch::SubmitServiceJobRequest& request,
                                   const std::string& queue, const std::string& unique,
                                   const PayloadRules& rules) {
  TRY(check_batch_name(*request.job_name, "jobName"));
  const auto training = TRY(read_payload(*request.service_request_payload, unique, rules));
  auto spec = sagemaker::job_spec_of(training, rules.find_image, rules.file_systems);
  if (!spec) return of_payload(spec.failure(payload::kService).message);
  ServiceJob job;
  job.name = *training.training_job_name;
  job.spec = *std::move(spec);
  job.tags = TRY(tags_of(request, training));
  job.spec.queue.emplace();
  job.spec.display_name = *request.job_name;
  job.spec.queue->name = queue;
  if (request.retry_strategy)
    TRY(read_retries(retries_of(*request.retry_strategy), job.spec.retry));
  TRY(read_queue_position(request, *job.spec.queue));
  if (request.timeout_config && request.timeout_config->attempt_duration_seconds) {
    const int64_t seconds = *request.timeout_config->attempt_duration_seconds;
    if (seconds < catalog::kAttemptSecondsMin)
      return client_exception("timeoutConfig.attemptDurationSeconds must be at least " +
                              std::to_string(catalog::kAttemptSecondsMin));
    job.spec.max_runtime_seconds = std::min(job.spec.max_runtime_seconds, seconds);
  }
  job.spec.queue->request = TRY(json_of<batch::SubmitServiceJob>(request));
  for (const char* member : {"tags", "clientToken"}) job.spec.queue->request.erase(member);
  return job;
}

batch::DescribeServiceJobResponse describe_service(const domain::Job& job) {
  CHECK(job.spec.queue && job.spec.contract == domain::Contract::training,
        "the job is a service job");
  batch::DescribeServiceJobResponse out;
  // A stored request that does not match the current shape (from an old version) is left out.
  const auto read =
      read_json_into(*batch::DescribeServiceJob::shape().output, job.spec.queue->request, &out);
  if (!read) out = {};
  out.job_queue =
      catalog::arn_of(job.account, job.key.region, catalog::kQueueArn, job.spec.queue->name);
  out.scheduling_priority = job.priority();
  show(job, out);
  out.capacity_usage = by_unit<batch::ServiceJobCapacityUsageDetail>(capacity_of(job));
  out.attempts.emplace();
  std::vector<batch::ServiceJobPreemptedAttempt> preempted;
  for (const domain::Attempt& attempt : job.attempts) {
    if (!attempt.ended) continue;
    std::string reason =
        attempt.interrupted ? attempt.interruption : catalog::service_end_of(attempt);
    if (attempt.preempted)
      preempted.push_back(
          describe_attempt<batch::ServiceJobPreemptedAttempt>(job, attempt, reason));
    out.attempts->push_back(
        describe_attempt<batch::ServiceJobAttemptDetail>(job, attempt, std::move(reason)));
  }
  if (preempted.empty()) return out;
  out.preemption_summary.emplace();
  out.preemption_summary->preempted_attempt_count = int64_t(preempted.size());
  if (preempted.size() > kPreemptionsListed)
    preempted.erase(preempted.begin(), preempted.end() - ptrdiff_t(kPreemptionsListed));
  out.preemption_summary->recent_preempted_attempts = std::move(preempted);
  return out;
}

batch::ServiceJobSummary summary_of_service(const domain::Job& job) {
  CHECK(job.spec.queue && job.spec.contract == domain::Contract::training,
        "the job is a service job");
  batch::ServiceJobSummary out;
  show(job, out);
  if (out.status_reason) out.status_reason = listed_failure(*out.status_reason);
  out.capacity_usage = by_unit<batch::ServiceJobCapacityUsageSummary>(capacity_of(job));
  return out;
}

}  // namespace trainyard::api::batch_api
