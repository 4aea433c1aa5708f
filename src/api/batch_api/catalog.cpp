// Implements the operations on compute environments and job queues.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch_api/requests.hpp"
#include "domain/usage.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::JobKey;
using trainyard::batch::ResourceChange;

// -- compute environments

void create_environment(const Services& services, const Context& context,
                        const batch::CreateComputeEnvironmentRequest& request,
                        const Answer<batch::CreateComputeEnvironmentResponse>& answer) {
  batch::CreateComputeEnvironmentResponse out;
  out.compute_environment_name = request.compute_environment_name;
  change_named_resource(services, context, ResourceChange::create, catalog::kEnvironmentArn,
                        environment_of(request, context.region), request.tags, std::move(out),
                        &batch::CreateComputeEnvironmentResponse::compute_environment_arn, answer);
}

void update_environment(const Services& services, const Context& context,
                        const batch::UpdateComputeEnvironmentRequest& request,
                        const Answer<batch::UpdateComputeEnvironmentResponse>& answer) {
  const JobKey key =
      batch_resource_key(context, *request.compute_environment, catalog::kEnvironmentArn);
  const auto stored = services.control.batch_catalog();
  const auto* present = stored->environment(key);
  if (!present) return answer(no_such_resource("compute environment", key.name));
  batch::UpdateComputeEnvironmentResponse out;
  out.compute_environment_name = key.name;
  change_named_resource(services, context, ResourceChange::update, catalog::kEnvironmentArn,
                        environment_of(request, *present), {}, std::move(out),
                        &batch::UpdateComputeEnvironmentResponse::compute_environment_arn, answer);
}

// The vCPU that the environment's jobs use.
double cpus_held(const std::vector<std::shared_ptr<const domain::Job>>& jobs,
                 const JobKey& environment) {
  double cpus = 0;
  for (const auto& job : jobs) {
    const domain::Attempt* attempt = job->attempt();
    if (attempt && attempt->state != domain::AttemptState::ended &&
        job->spec.contract == domain::Contract::plain && job->key.region == environment.region &&
        attempt->environment == environment.name)
      cpus += domain::cpus_of(*attempt);
  }
  return cpus;
}

Outcome<batch::DescribeComputeEnvironmentsResponse> describe_environments(
    const Services& services, const Context& context,
    const batch::DescribeComputeEnvironmentsRequest& request) {
  batch::DescribeComputeEnvironmentsResponse out;
  const auto stored = services.control.batch_catalog();
  const auto jobs = services.control.live_jobs();
  const auto results_max = TRY(results_max_of(request.max_results));
  out.compute_environments =
      TRY((page_of<batch::ComputeEnvironmentDetail, catalog::ComputeEnvironment>(
          context, stored->environments,
          named_by<catalog::ComputeEnvironment>(request.compute_environments,
                                                catalog::kEnvironmentArn),
          results_max, request.next_token.value_or(""), out.next_token,
          [&](const catalog::ComputeEnvironment& batch_resource)
              -> Outcome<batch::ComputeEnvironmentDetail> {
            auto detail = TRY(describe(batch_resource, context.principal.account));
            if (detail.compute_resources)
              detail.compute_resources->desiredv_cpus =
                  int64_t(std::ceil(std::max({batch_resource.cpus_min, batch_resource.cpus_desired,
                                              cpus_held(jobs, batch_resource.key)})));
            detail.tags = batch_tags_out(TRY(services.control.tags(
                batch_resource_arn(context, catalog::kEnvironmentArn, batch_resource.key.name))));
            return detail;
          })));
  return out;
}

// -- job queues

void create_queue(const Services& services, const Context& context,
                  const batch::CreateJobQueueRequest& request,
                  const Answer<batch::CreateJobQueueResponse>& answer) {
  batch::CreateJobQueueResponse out;
  out.job_queue_name = request.job_queue_name;
  change_named_resource(services, context, ResourceChange::create, catalog::kQueueArn,
                        queue_of(request, context.region), request.tags, std::move(out),
                        &batch::CreateJobQueueResponse::job_queue_arn, answer);
}

void update_queue(const Services& services, const Context& context,
                  const batch::UpdateJobQueueRequest& request,
                  const Answer<batch::UpdateJobQueueResponse>& answer) {
  const JobKey key = batch_resource_key(context, *request.job_queue, catalog::kQueueArn);
  const auto stored = services.control.batch_catalog();
  const auto* present = stored->queue(key);
  if (!present) return answer(no_such_resource("job queue", key.name));
  batch::UpdateJobQueueResponse out;
  out.job_queue_name = key.name;
  change_named_resource(services, context, ResourceChange::update, catalog::kQueueArn,
                        queue_of(request, *present), {}, std::move(out),
                        &batch::UpdateJobQueueResponse::job_queue_arn, answer);
}

Outcome<batch::DescribeJobQueuesResponse> describe_queues(
    const Services& services, const Context& context,
    const batch::DescribeJobQueuesRequest& request) {
  batch::DescribeJobQueuesResponse out;
  const auto stored = services.control.batch_catalog();
  const auto results_max = TRY(results_max_of(request.max_results));
  out.job_queues = TRY((page_of<batch::JobQueueDetail, catalog::JobQueue>(
      context, stored->queues, named_by<catalog::JobQueue>(request.job_queues, catalog::kQueueArn),
      results_max, request.next_token.value_or(""), out.next_token,
      [&](const catalog::JobQueue& batch_resource) -> Outcome<batch::JobQueueDetail> {
        auto detail = TRY(describe(batch_resource, context.principal.account));
        detail.tags = batch_tags_out(TRY(services.control.tags(
            batch_resource_arn(context, catalog::kQueueArn, batch_resource.key.name))));
        return detail;
      })));
  return out;
}

}  // namespace

void add_catalog(OperationTable& table, const Settings&, const Services& services) {
  table.add_later<batch::CreateComputeEnvironment>(
      [&](const Context& context, batch::CreateComputeEnvironmentRequest request, auto answer) {
        create_environment(services, context, request, answer);
      });
  table.add<batch::DescribeComputeEnvironments>(
      [&](const Context& context, const batch::DescribeComputeEnvironmentsRequest& request) {
        return describe_environments(services, context, request);
      });
  table.add_later<batch::UpdateComputeEnvironment>(
      [&](const Context& context, batch::UpdateComputeEnvironmentRequest request, auto answer) {
        update_environment(services, context, request, answer);
      });
  table.add_later<batch::DeleteComputeEnvironment>(
      [&](const Context& context, batch::DeleteComputeEnvironmentRequest request, auto answer) {
        const JobKey key =
            batch_resource_key(context, *request.compute_environment, catalog::kEnvironmentArn);
        remove_batch_resource<catalog::ComputeEnvironment>(
            services, key, services.control.batch_catalog()->environment(key), answer);
      });
  table.add_later<batch::CreateJobQueue>(
      [&](const Context& context, batch::CreateJobQueueRequest request, auto answer) {
        create_queue(services, context, request, answer);
      });
  table.add<batch::DescribeJobQueues>(
      [&](const Context& context, const batch::DescribeJobQueuesRequest& request) {
        return describe_queues(services, context, request);
      });
  table.add_later<batch::UpdateJobQueue>(
      [&](const Context& context, batch::UpdateJobQueueRequest request, auto answer) {
        update_queue(services, context, request, answer);
      });
  table.add_later<batch::DeleteJobQueue>(
      [&](const Context& context, batch::DeleteJobQueueRequest request, auto answer) {
        const JobKey key = batch_resource_key(context, *request.job_queue, catalog::kQueueArn);
        remove_batch_resource<catalog::JobQueue>(
            services, key, services.control.batch_catalog()->queue(key), answer);
      });
}

}  // namespace trainyard::api::batch_api
