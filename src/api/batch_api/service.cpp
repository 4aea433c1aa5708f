// Implements the operations on service environments and on service jobs, which are training jobs in
// Batch queues.
#include "batch_api/service.hpp"

#include <algorithm>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch/limits.hpp"
#include "batch/service_job.hpp"
#include "batch_api/requests.hpp"
#include "operations/job_role.hpp"
#include "operations/shared_directories.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::JobKey;
using trainyard::batch::ResourceChange;
using trainyard::batch::ServiceEnvironment;

constexpr size_t kUniqueDigits = 20;         // 80 bits: not guessable, and short in names
constexpr size_t kServiceTagBytesMax = 256;  // as on AWS

// -- service environments

// Requires: `environment.request` is complete.
Outcome<ServiceEnvironment> checked(ServiceEnvironment environment) {
  const Json& request = environment.request;
  environment.enabled = request.value("state", "ENABLED") == "ENABLED";
  environment.limits = TRY(capacity_limits_of(request.value("capacityLimits", Json::array())));
  return environment;
}

void create_environment(const Services& services, const Context& context,
                        const batch::CreateServiceEnvironmentRequest& request,
                        const Answer<batch::CreateServiceEnvironmentResponse>& answer) {
  const auto made = [&]() -> Outcome<ServiceEnvironment> {
    TRY(check_batch_name(*request.service_environment_name, "serviceEnvironmentName"));
    ServiceEnvironment environment;
    environment.key = {context.region, *request.service_environment_name};
    environment.request = TRY(json_of<batch::CreateServiceEnvironment>(request));
    environment.request.erase("tags");
    return checked(std::move(environment));
  };
  batch::CreateServiceEnvironmentResponse out;
  out.service_environment_name = request.service_environment_name;
  change_named_resource(services, context, ResourceChange::create, catalog::kServiceEnvironmentArn,
                        made(), request.tags, std::move(out),
                        &batch::CreateServiceEnvironmentResponse::service_environment_arn, answer);
}

void update_environment(const Services& services, const Context& context,
                        const batch::UpdateServiceEnvironmentRequest& request,
                        const Answer<batch::UpdateServiceEnvironmentResponse>& answer) {
  const JobKey key =
      batch_resource_key(context, *request.service_environment, catalog::kServiceEnvironmentArn);
  const auto stored = services.control.batch_catalog();
  const ServiceEnvironment* present = stored->service_environment(key);
  if (!present) return answer(no_such_resource("service environment", key.name));
  const auto made = [&]() -> Outcome<ServiceEnvironment> {
    ServiceEnvironment environment = *present;
    Json changes = TRY(json_of<batch::UpdateServiceEnvironment>(request));
    changes.erase("serviceEnvironment");
    environment.request.merge_patch(changes);
    return checked(std::move(environment));
  };
  batch::UpdateServiceEnvironmentResponse out;
  out.service_environment_name = key.name;
  change_named_resource(services, context, ResourceChange::update, catalog::kServiceEnvironmentArn,
                        made(), {}, std::move(out),
                        &batch::UpdateServiceEnvironmentResponse::service_environment_arn, answer);
}

Outcome<batch::DescribeServiceEnvironmentsResponse> describe_environments(
    const Services& services, const Context& context,
    const batch::DescribeServiceEnvironmentsRequest& request) {
  const auto results_max = TRY(results_max_of(request.max_results));
  const auto stored = services.control.batch_catalog();
  const auto& shape =
      element_of(batch::DescribeServiceEnvironments::shape(), "serviceEnvironments");
  batch::DescribeServiceEnvironmentsResponse out;
  out.service_environments = TRY((page_of<batch::ServiceEnvironmentDetail, ServiceEnvironment>(
      context, stored->service_environments,
      named_by<ServiceEnvironment>(request.service_environments, catalog::kServiceEnvironmentArn),
      results_max, request.next_token.value_or(""), out.next_token,
      [&](const ServiceEnvironment& resource) -> Outcome<batch::ServiceEnvironmentDetail> {
        batch::ServiceEnvironmentDetail detail;
        TRY(read_json_into(shape, resource.request, &detail));
        detail.service_environment_arn =
            batch_resource_arn(context, catalog::kServiceEnvironmentArn, resource.key.name);
        detail.state = resource.enabled ? "ENABLED" : "DISABLED";
        detail.status = "VALID";
        detail.tags = batch_tags_out(TRY(services.control.tags(*detail.service_environment_arn)));
        return detail;
      })));
  return out;
}

// -- service jobs

// Makes the unique part of a job's name. A request that a client repeats with its token gets the
// same one.
std::string unique_of(const Services& services, const batch::SubmitServiceJobRequest& request) {
  if (!request.client_token) return services.random.hex(kUniqueDigits / 2);
  const std::string whole = *request.client_token + "\n" + *request.job_name + "\n" +
                            *request.job_queue + "\n" + *request.service_request_payload;
  return to_hex(bytes_of(sha256(whole))).substr(0, kUniqueDigits);
}

void submit(const Settings& settings, const PayloadRules& rules, const Services& services,
            const Context& context, const batch::SubmitServiceJobRequest& request,
            Answer<batch::SubmitServiceJobResponse> answer) {
  const std::string queue(catalog::name_in_arn(*request.job_queue, catalog::kQueueArn));
  auto job = service_job_of(request, queue, unique_of(services, request), rules);
  if (!job) return answer(std::move(job).error());
  job->tags.push_back(
      {std::string(kCreatedByTag), context.principal.arn.substr(0, kServiceTagBytesMax)});
  job->spec.principal = context.principal.name;
  auto role = job_role(settings, context.principal.account, job->spec.role_arn);
  if (!role) return answer(client_exception("RoleArn: " + role.error().message));
  job->spec.role_arn = *std::move(role);
  if (auto checked = check_shared_directories(settings, context.principal, job->spec); !checked)
    return answer(client_exception(checked.error().message));
  const JobKey key{context.region, job->name};
  batch::SubmitServiceJobResponse out;
  out.job_arn = batch_resource_arn(context, catalog::kServiceJobArn, job->name);
  out.job_id = job->name;
  out.job_name = *request.job_name;
  const bool repeatable = request.client_token.has_value();
  services.control.create_job(
      {key, std::move(job->spec), std::move(job->tags)},
      [answer = std::move(answer), out, repeatable](Result<domain::Job> made) {
        if (made || (repeatable && made.error().kind == Kind::conflict)) return answer(out);
        answer(std::move(made).error());
      });
}

JobKey service_key(const Context& context, const std::string& id_or_arn) {
  return batch_resource_key(context, id_or_arn, catalog::kServiceJobArn);
}

Outcome<std::shared_ptr<const domain::Job>> find_service_job(const Services& services,
                                                             const Context& context,
                                                             const JobKey& key) {
  const auto job = services.control.find(key, context.may_see_job());
  if (!job && job.error().kind != Kind::not_found) return job.error();
  if (!job || !(*job)->spec.queue || (*job)->spec.contract != domain::Contract::training)
    return no_such_resource("service job", key.name);
  return *job;
}

Outcome<batch::DescribeServiceJobResponse> describe_job(
    const Services& services, const Context& context,
    const batch::DescribeServiceJobRequest& request) {
  const auto job = TRY(find_service_job(services, context, service_key(context, *request.job_id)));
  auto out = describe_service(*job);
  out.tags = batch_tags_out(TRY(services.control.tags(control::job_arn(*job))));
  return out;
}

// The filters that the ledger cannot apply.
struct ServiceJobFilter {
  std::optional<catalog::ServiceStatus> status;
  std::vector<std::string> names, shares, quota_shares;

  bool matches(const domain::Job& job) const {
    const auto is_one_of = [](const std::vector<std::string>& values, const std::string& value) {
      return values.empty() || std::ranges::find(values, value) != values.end();
    };
    if (!job.spec.queue || job.spec.contract != domain::Contract::training) return false;
    return (!status || catalog::service_status(job) == *status) &&
           any_matches(names, job.spec.display_name) && is_one_of(shares, job.spec.queue->share) &&
           is_one_of(quota_shares, job.spec.queue->quota_share);
  }
};

Outcome<ServiceJobFilter> read_filters(const batch::ListServiceJobsRequest& request,
                                       ledger::JobQuery& query) {
  ServiceJobFilter wanted;
  const auto filters = request.filters.value_or(std::vector<batch::KeyValuesPair>());
  if (filters.size() > 1)
    return client_exception("filters accepts one filter, not " + std::to_string(filters.size()));
  bool any_status = false;
  for (const auto& filter : filters) {
    const auto values = filter.values.value_or(std::vector<std::string>());
    const std::string name = filter.name.value_or("");
    if (values.empty())
      return client_exception("the filter " + shorten(name, 60) + " needs a value");
    any_status = true;
    if (name == "JOB_NAME") {
      wanted.names = values;
    } else if (name == "BEFORE_CREATED_AT") {
      query.created_before = TRY(filter_instant(name, values.front()));
    } else if (name == "AFTER_CREATED_AT") {
      query.created_after = TRY(filter_instant(name, values.front()));
    } else if (name == "SHARE_IDENTIFIER" || name == "QUOTA_SHARE_NAME") {
      (name == "SHARE_IDENTIFIER" ? wanted.shares : wanted.quota_shares) = values;
      any_status = !request.job_status;  // these two filters can be combined with a status
    } else {
      return client_exception(
          "the filter " + shorten(name, 60) +
          " is not one of JOB_NAME, BEFORE_CREATED_AT, AFTER_CREATED_AT, SHARE_IDENTIFIER, "
          "QUOTA_SHARE_NAME");
    }
  }
  if (any_status) return wanted;
  const std::string status = request.job_status.value_or("RUNNING");
  for (int i = 0; i <= int(catalog::ServiceStatus::failed); ++i)
    if (catalog::to_string(catalog::ServiceStatus(i)) == status)
      wanted.status = catalog::ServiceStatus(i);
  if (!wanted.status) return client_exception("'" + shorten(status, 60) + "' is not a job status");
  query.states = catalog::states_of(*wanted.status);
  return wanted;
}

Outcome<batch::ListServiceJobsResponse> list_jobs(const Services& services, const Context& context,
                                                  const batch::ListServiceJobsRequest& request) {
  const JobKey queue =
      batch_resource_key(context, request.job_queue.value_or(""), catalog::kQueueArn);
  if (!services.control.batch_catalog()->queue(queue))
    return no_such_resource("job queue", queue.name);
  ledger::JobQuery query;
  query.region = context.region;
  query.queue = std::string(domain::kTrainingQueues) + queue.name;
  query.token = request.next_token.value_or("");
  const ServiceJobFilter wanted = TRY(read_filters(request, query));
  const auto results_max = size_t(TRY(results_max_of(request.max_results)));
  batch::ListServiceJobsResponse out;
  out.job_summary_list.emplace();
  if (wanted.status && query.states.empty()) return out;  // no stored job has this status
  for (const auto& job :
       TRY(scan_jobs(services, context, query, results_max,
                     [&](const domain::Job& job) { return wanted.matches(job); })))
    out.job_summary_list->push_back(summary_of_service(*job));
  if (!query.token.empty()) out.next_token = query.token;
  return out;
}

// Terminating a finished job has no effect and is not an error.
void terminate(const Services& services, const Context& context, const std::string& id,
               const std::string& reason, std::function<void(Outcome<Done>)> answer) {
  if (trim(reason).empty()) return answer(client_exception("reason is required"));
  const JobKey key = service_key(context, id);
  const auto found = find_service_job(services, context, key);
  if (!found) return answer(found.failure(shapes::batch::kService));
  services.control.cancel_job(key, domain::Cancellation::terminated, reason,
                              [answer = std::move(answer)](Result<domain::Job> job) {
                                if (job || job.error().kind == Kind::conflict)
                                  return answer(Done{});
                                answer(std::move(job).error());
                              });
}

void terminate_job(const Services& services, const Context& context,
                   const batch::TerminateServiceJobRequest& request,
                   Answer<batch::TerminateServiceJobResponse> answer) {
  terminate(services, context, *request.job_id, *request.reason,
            [answer = std::move(answer)](Outcome<Done> done) {
              if (done) return answer(batch::TerminateServiceJobResponse{});
              answer(std::move(done).error());
            });
}

void terminate_jobs(const Services& services, const Context& context,
                    const batch::TerminateServiceJobsRequest& request,
                    Answer<batch::TerminateServiceJobsResponse> answer) {
  change_each_job<batch::TerminateServiceJobsResponse, batch::TerminateServiceJobsErrorDetail>(
      *request.jobs,
      [&services, context, reason = *request.reason](const std::string& id,
                                                     std::function<void(Outcome<Done>)> done) {
        terminate(services, context, id, reason, std::move(done));
      },
      std::move(answer));
}

void update_job(const Services& services, const Context& context,
                const batch::UpdateServiceJobRequest& request,
                Answer<batch::UpdateServiceJobResponse> answer) {
  const JobKey key = service_key(context, *request.job_id);
  const auto found = find_service_job(services, context, key);
  if (!found) return answer(found.failure(shapes::batch::kService));
  const int64_t priority = *request.scheduling_priority;
  if (priority < 0 || priority > catalog::kSchedulingPriorityMax)
    return answer(client_exception("schedulingPriority must be between 0 and " +
                                   std::to_string(catalog::kSchedulingPriorityMax)));
  services.control.prioritise_job(key, priority,
                                  [answer = std::move(answer)](Result<domain::Job> job) {
                                    if (!job) return answer(std::move(job).error());
                                    batch::UpdateServiceJobResponse out;
                                    out.job_arn = service_job_arn(*job);
                                    out.job_id = job->key.name;
                                    out.job_name = job->spec.display_name;
                                    answer(std::move(out));
                                  });
}

}  // namespace

void add_service(OperationTable& table, const Settings& settings, const Services& services) {
  // Owned by the functions of the table, and destroyed with the table.
  const auto constraints = std::make_shared<const Constraints>(shapes::sagemaker::kService);

  table.add_later<batch::CreateServiceEnvironment>(
      [&](const Context& context, batch::CreateServiceEnvironmentRequest request, auto answer) {
        create_environment(services, context, request, answer);
      });
  table.add<batch::DescribeServiceEnvironments>(
      [&](const Context& context, const batch::DescribeServiceEnvironmentsRequest& request) {
        return describe_environments(services, context, request);
      });
  table.add_later<batch::UpdateServiceEnvironment>(
      [&](const Context& context, batch::UpdateServiceEnvironmentRequest request, auto answer) {
        update_environment(services, context, request, answer);
      });
  table.add_later<batch::DeleteServiceEnvironment>(
      [&](const Context& context, batch::DeleteServiceEnvironmentRequest request, auto answer) {
        const JobKey key = batch_resource_key(context, *request.service_environment,
                                              catalog::kServiceEnvironmentArn);
        remove_batch_resource<ServiceEnvironment>(
            services, key, services.control.batch_catalog()->service_environment(key), answer);
      });
  table.add_later<batch::SubmitServiceJob>([&, constraints](const Context& context,
                                                            batch::SubmitServiceJobRequest request,
                                                            auto answer) {
    const auto file_systems = known_file_systems(settings, services, context.region);
    const PayloadRules rules{*constraints, settings.find_image, file_systems};
    submit(settings, rules, services, context, request, std::move(answer));
  });
  table.add<batch::DescribeServiceJob>(
      [&](const Context& context, const batch::DescribeServiceJobRequest& request) {
        return describe_job(services, context, request);
      });
  table.add<batch::ListServiceJobs>(
      [&](const Context& context, const batch::ListServiceJobsRequest& request) {
        return list_jobs(services, context, request);
      });
  table.add_later<batch::TerminateServiceJob>(
      [&](const Context& context, batch::TerminateServiceJobRequest request, auto answer) {
        terminate_job(services, context, request, std::move(answer));
      });
  table.add_later<batch::TerminateServiceJobs>(
      [&](const Context& context, batch::TerminateServiceJobsRequest request, auto answer) {
        terminate_jobs(services, context, request, std::move(answer));
      });
  table.add_later<batch::UpdateServiceJob>(
      [&](const Context& context, batch::UpdateServiceJobRequest request, auto answer) {
        update_job(services, context, request, std::move(answer));
      });
}

}  // namespace trainyard::api::batch_api
