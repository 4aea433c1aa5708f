// Operations on compute environments, job queues and job definitions, and on the tags of all Batch
// resources.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch_api/requests.hpp"
#include "domain/usage.hpp"
#include "operations/shared_directories.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::JobKey;
using trainyard::batch::ResourceChange;

// -- compute environments

void create_environment(const Services& services, const Context& context,
                        const batch::CreateComputeEnvironmentRequest& request,
                        Answer<batch::CreateComputeEnvironmentResponse> answer) {
  auto environment = environment_of(request, context.region);
  if (!environment) return answer(std::move(environment).error());
  auto tags = batch_tags_in(request.tags);
  if (!tags) return answer(std::move(tags).error());
  const std::string name = environment->key.name,
                    arn = batch_resource_arn(context, catalog::kEnvironmentArn, name);
  change_batch_resource<batch::CreateComputeEnvironmentResponse>(
      services, ResourceChange::create, *std::move(environment), arn, *std::move(tags),
      [name, arn](const auto&) {
        batch::CreateComputeEnvironmentResponse out;
        out.compute_environment_name = name;
        out.compute_environment_arn = arn;
        return out;
      },
      std::move(answer));
}

void update_environment(const Services& services, const Context& context,
                        const batch::UpdateComputeEnvironmentRequest& request,
                        Answer<batch::UpdateComputeEnvironmentResponse> answer) {
  const JobKey key =
      batch_resource_key(context, *request.compute_environment, catalog::kEnvironmentArn);
  const auto stored = services.control.batch_catalog();
  const auto* present = stored->environment(key);
  if (!present)
    return answer(
        client_exception("the compute environment " + shorten(key.name, 128) + " does not exist"));
  auto environment = environment_of(request, *present);
  if (!environment) return answer(std::move(environment).error());
  const std::string arn = batch_resource_arn(context, catalog::kEnvironmentArn, key.name);
  change_batch_resource<batch::UpdateComputeEnvironmentResponse>(
      services, ResourceChange::update, *std::move(environment), arn, {},
      [key, arn](const auto&) {
        batch::UpdateComputeEnvironmentResponse out;
        out.compute_environment_name = key.name;
        out.compute_environment_arn = arn;
        return out;
      },
      std::move(answer));
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

// -- job queues

void create_queue(const Services& services, const Context& context,
                  const batch::CreateJobQueueRequest& request,
                  Answer<batch::CreateJobQueueResponse> answer) {
  auto queue = queue_of(request, context.region);
  if (!queue) return answer(std::move(queue).error());
  auto tags = batch_tags_in(request.tags);
  if (!tags) return answer(std::move(tags).error());
  const std::string name = queue->key.name,
                    arn = batch_resource_arn(context, catalog::kQueueArn, name);
  change_batch_resource<batch::CreateJobQueueResponse>(
      services, ResourceChange::create, *std::move(queue), arn, *std::move(tags),
      [name, arn](const auto&) {
        batch::CreateJobQueueResponse out;
        out.job_queue_name = name;
        out.job_queue_arn = arn;
        return out;
      },
      std::move(answer));
}

void update_queue(const Services& services, const Context& context,
                  const batch::UpdateJobQueueRequest& request,
                  Answer<batch::UpdateJobQueueResponse> answer) {
  const JobKey key = batch_resource_key(context, *request.job_queue, catalog::kQueueArn);
  const auto stored = services.control.batch_catalog();
  const auto* present = stored->queue(key);
  if (!present)
    return answer(client_exception("the job queue " + shorten(key.name, 128) + " does not exist"));
  auto queue = queue_of(request, *present);
  if (!queue) return answer(std::move(queue).error());
  const std::string arn = batch_resource_arn(context, catalog::kQueueArn, key.name);
  change_batch_resource<batch::UpdateJobQueueResponse>(
      services, ResourceChange::update, *std::move(queue), arn, {},
      [key, arn](const auto&) {
        batch::UpdateJobQueueResponse out;
        out.job_queue_name = key.name;
        out.job_queue_arn = arn;
        return out;
      },
      std::move(answer));
}

// -- job definitions

// Rejects a definition with shared directories that its author may not use. Anything else that
// prevents its jobs from running depends on the submitted request, which is rejected then.
std::optional<Failure> refuse_directories(const Settings& settings, const Context& context,
                                          const catalog::JobDefinition& definition) {
  batch::SubmitJobRequest submitted;
  submitted.job_name = submitted.job_queue = submitted.job_definition = definition.key.name;
  const auto spec = batch_spec_of(submitted, definition, definition.key.name, context.region,
                                  context.principal.account, definition.key.name, settings);
  if (!spec) return {};
  const auto checked = check_shared_directories(settings, context.principal, *spec);
  return checked ? std::nullopt : std::optional(client_exception(checked.error().message));
}

void register_definition(const Settings& settings, const Services& services, const Context& context,
                         const batch::RegisterJobDefinitionRequest& request,
                         Answer<batch::RegisterJobDefinitionResponse> answer) {
  auto definition = definition_of(request, context.region);
  if (!definition) return answer(std::move(definition).error());
  if (auto refused = refuse_directories(settings, context, *definition))
    return answer(std::move(*refused));
  auto tags = batch_tags_in(request.tags);
  if (!tags) return answer(std::move(tags).error());
  const std::string name = definition->key.name,
                    arn = batch_resource_arn(context, catalog::kDefinitionArn, name);
  change_batch_resource<batch::RegisterJobDefinitionResponse>(
      services, ResourceChange::create, *std::move(definition), arn, *std::move(tags),
      [name, arn](const catalog::Resource& batch_resource) {
        batch::RegisterJobDefinitionResponse out;
        out.job_definition_name = name;
        out.revision = std::get<catalog::JobDefinition>(batch_resource).revision;
        out.job_definition_arn = arn + ":" + std::to_string(*out.revision);
        return out;
      },
      std::move(answer));
}

// "train", "train:3" or an ARN of either.
struct Named {
  std::string name;
  std::optional<uint32_t> revision;
};
Named named(const std::string& text) {
  const std::string name(catalog::name_in_arn(text, catalog::kDefinitionArn));
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return {name, {}};
  return {name.substr(0, colon), revision_in(std::string_view(name).substr(colon + 1))};
}

Outcome<batch::DescribeJobDefinitionsResponse> describe_definitions(
    const Services& services, const Context& context,
    const batch::DescribeJobDefinitionsRequest& request) {
  const auto results_max = size_t(TRY(results_max_of(request.max_results)));
  batch::DescribeJobDefinitionsResponse out;
  out.job_definitions.emplace();
  std::vector<Named> wanted;
  for (const auto& each : request.job_definitions.value_or(std::vector<std::string>()))
    wanted.push_back(named(each));
  if (wanted.size() > size_t(kPageMaxBatch))
    return client_exception("jobDefinitions names at most " + std::to_string(kPageMaxBatch));
  const bool all = wanted.empty() && !request.job_definition_name;
  if (wanted.empty()) wanted.push_back({request.job_definition_name.value_or(""), {}});
  for (const Named& each : wanted) {
    if (each.name.empty() && !all) continue;  // no definition has an empty name
    ledger::DefinitionQuery query;
    query.region = context.region;
    query.name = each.name;
    query.revision = each.revision;
    if (request.status) query.active = *request.status == "ACTIVE";
    query.definitions_max = results_max - out.job_definitions->size() + 1;
    if (request.next_token) {
      const Named last = named(*request.next_token);
      query.after_name = last.name;
      query.after_revision = last.revision.value_or(0);
    }
    for (const auto& definition : TRY(services.control.definitions(query))) {
      if (out.job_definitions->size() == results_max) {
        const auto& last = out.job_definitions->back();
        out.next_token = *last.job_definition_name + ":" + std::to_string(*last.revision);
        return out;
      }
      auto detail = TRY(describe(definition, context.principal.account));
      detail.tags = batch_tags_out(TRY(services.control.tags(*detail.job_definition_arn)));
      out.job_definitions->push_back(std::move(detail));
    }
  }
  return out;
}

void deregister_definition(const Services& services, const Context& context,
                           const batch::DeregisterJobDefinitionRequest& request,
                           Answer<batch::DeregisterJobDefinitionResponse> answer) {
  const Named which = named(*request.job_definition);
  if (!which.revision)
    return answer(client_exception(
        "jobDefinition needs a name and a revision: " + shorten(which.name, 128) + ":1"));
  ledger::DefinitionQuery query;
  query.region = context.region;
  query.name = which.name;
  query.revision = which.revision;
  query.definitions_max = 1;
  auto found = services.control.definitions(query);
  if (!found) return answer(std::move(found).error());
  if (found->empty() || !found->front().active)
    return answer(batch::DeregisterJobDefinitionResponse{});
  catalog::JobDefinition definition = std::move(found->front());
  definition.active = false;
  change_batch_resource<batch::DeregisterJobDefinitionResponse>(
      services, ResourceChange::update, std::move(definition), "", {},
      [](const auto&) { return batch::DeregisterJobDefinitionResponse{}; }, std::move(answer));
}

// -- tags

// Checks that the resource exists in this account and region. Errors: ClientException.
Outcome<Done> check_resource(const Services& services, const Context& context,
                             const std::string& arn) {
  const auto is = [&](std::string_view kind) { return catalog::name_in_arn(arn, kind) != arn; };
  const auto named_as = [&](std::string_view kind) {
    return JobKey{context.region, std::string(catalog::name_in_arn(arn, kind))};
  };
  const auto parts = split(arn, ':');
  bool there = parts.size() > 5 && parts[2] == "batch" && parts[3] == context.region &&
               parts[4] == context.principal.account;
  if (there && is(catalog::kEnvironmentArn)) {
    there = services.control.batch_catalog()->environment(named_as(catalog::kEnvironmentArn)) !=
            nullptr;
  } else if (there && is(catalog::kQueueArn)) {
    there = services.control.batch_catalog()->queue(named_as(catalog::kQueueArn)) != nullptr;
  } else if (there && is(catalog::kPolicyArn)) {
    there = services.control.batch_catalog()->policies.contains(named_as(catalog::kPolicyArn));
  } else if (there && is(catalog::kServiceEnvironmentArn)) {
    there = services.control.batch_catalog()->service_environment(
        named_as(catalog::kServiceEnvironmentArn));
  } else if (there && is(catalog::kQuotaShareArn)) {
    there = services.control.batch_catalog()->quota_share(named_as(catalog::kQuotaShareArn));
  } else if (there && is(catalog::kResourceArn)) {
    there = services.control.batch_catalog()->resource(named_as(catalog::kResourceArn));
  } else if (there && is(catalog::kDefinitionArn)) {
    const Named which = named(arn);
    ledger::DefinitionQuery query;
    query.region = context.region;
    query.name = which.name;
    query.revision = which.revision.value_or(0);
    there = !TRY(services.control.definitions(query)).empty();
  } else if (there && is(catalog::kServiceJobArn)) {
    there = bool(services.control.find(named_as(catalog::kServiceJobArn)));
  } else if (there && is(catalog::kJobArn)) {
    there = bool(services.control.find(named_as(catalog::kJobArn)));
  } else {
    there = false;
  }
  if (there) return Done{};
  return client_exception("Resource not found: " + shorten(arn, 256));
}

// The ARN under which the tags are stored: for a service job, that of its training job.
std::string tagged_arn(const Context& context, const std::string& arn) {
  const auto name = catalog::name_in_arn(arn, catalog::kServiceJobArn);
  if (name == arn) return arn;
  return control::job_arn(context.principal.account, {context.region, std::string(name)});
}

template <class Output>
void set_tags(const Services& services, const Context& context, const std::string& arn,
              std::vector<domain::Tag> add, std::vector<std::string> remove_keys,
              Answer<Output> answer) {
  auto there = check_resource(services, context, arn);
  if (!there) return answer(std::move(there).error());
  services.control.set_tags(tagged_arn(context, arn), std::move(add), std::move(remove_keys),
                            [answer = std::move(answer)](Result<std::vector<domain::Tag>> set) {
                              if (set) return answer(Output{});
                              answer(std::move(set).error());
                            });
}

void untag(const Services& services, const Context& context,
           const batch::UntagResourceRequest& request,
           Answer<batch::UntagResourceResponse> answer) {
  for (const auto& key : *request.tag_keys)
    if (to_lower(key).starts_with("aws:"))
      return answer(client_exception("Tag keys that begin with aws: are reserved: " + key));
  set_tags<batch::UntagResourceResponse>(services, context, *request.resource_arn, {},
                                         *request.tag_keys, std::move(answer));
}

}  // namespace

void add_catalog(OperationTable& table, const Settings& settings, const Services& services) {
  table.add_later<batch::CreateComputeEnvironment>(
      [&](const Context& context, batch::CreateComputeEnvironmentRequest request, auto answer) {
        create_environment(services, context, request, std::move(answer));
      });
  table.add<batch::DescribeComputeEnvironments>(
      [&](const Context& context, const batch::DescribeComputeEnvironmentsRequest& request)
          -> Outcome<batch::DescribeComputeEnvironmentsResponse> {
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
                    detail.compute_resources->desiredv_cpus = int64_t(std::ceil(
                        std::max(batch_resource.cpus_min, cpus_held(jobs, batch_resource.key))));
                  detail.tags = batch_tags_out(TRY(services.control.tags(batch_resource_arn(
                      context, catalog::kEnvironmentArn, batch_resource.key.name))));
                  return detail;
                })));
        return out;
      });
  table.add_later<batch::UpdateComputeEnvironment>(
      [&](const Context& context, batch::UpdateComputeEnvironmentRequest request, auto answer) {
        update_environment(services, context, request, std::move(answer));
      });
  table.add_later<batch::DeleteComputeEnvironment>(
      [&](const Context& context, batch::DeleteComputeEnvironmentRequest request, auto answer) {
        catalog::ComputeEnvironment batch_resource;
        batch_resource.key =
            batch_resource_key(context, *request.compute_environment, catalog::kEnvironmentArn);
        const bool present =
            services.control.batch_catalog()->environment(batch_resource.key) != nullptr;
        remove_batch_resource<batch::DeleteComputeEnvironmentResponse>(
            services, std::move(batch_resource), present, std::move(answer));
      });
  table.add_later<batch::CreateJobQueue>(
      [&](const Context& context, batch::CreateJobQueueRequest request, auto answer) {
        create_queue(services, context, request, std::move(answer));
      });
  table.add<batch::DescribeJobQueues>(
      [&](const Context& context, const batch::DescribeJobQueuesRequest& request)
          -> Outcome<batch::DescribeJobQueuesResponse> {
        batch::DescribeJobQueuesResponse out;
        const auto stored = services.control.batch_catalog();
        const auto results_max = TRY(results_max_of(request.max_results));
        out.job_queues = TRY((page_of<batch::JobQueueDetail, catalog::JobQueue>(
            context, stored->queues,
            named_by<catalog::JobQueue>(request.job_queues, catalog::kQueueArn), results_max,
            request.next_token.value_or(""), out.next_token,
            [&](const catalog::JobQueue& batch_resource) -> Outcome<batch::JobQueueDetail> {
              auto detail = TRY(describe(batch_resource, context.principal.account));
              detail.tags = batch_tags_out(TRY(services.control.tags(
                  batch_resource_arn(context, catalog::kQueueArn, batch_resource.key.name))));
              return detail;
            })));
        return out;
      });
  table.add_later<batch::UpdateJobQueue>(
      [&](const Context& context, batch::UpdateJobQueueRequest request, auto answer) {
        update_queue(services, context, request, std::move(answer));
      });
  table.add_later<batch::DeleteJobQueue>(
      [&](const Context& context, batch::DeleteJobQueueRequest request, auto answer) {
        catalog::JobQueue batch_resource;
        batch_resource.key = batch_resource_key(context, *request.job_queue, catalog::kQueueArn);
        const bool present = services.control.batch_catalog()->queue(batch_resource.key) != nullptr;
        remove_batch_resource<batch::DeleteJobQueueResponse>(services, std::move(batch_resource),
                                                             present, std::move(answer));
      });
  table.add_later<batch::RegisterJobDefinition>(
      [&](const Context& context, batch::RegisterJobDefinitionRequest request, auto answer) {
        register_definition(settings, services, context, request, std::move(answer));
      });
  table.add<batch::DescribeJobDefinitions>(
      [&](const Context& context, const batch::DescribeJobDefinitionsRequest& request) {
        return describe_definitions(services, context, request);
      });
  table.add_later<batch::DeregisterJobDefinition>(
      [&](const Context& context, batch::DeregisterJobDefinitionRequest request, auto answer) {
        deregister_definition(services, context, request, std::move(answer));
      });
  table.add_later<batch::TagResource>(
      [&](const Context& context, batch::TagResourceRequest request, auto answer) {
        auto tags = batch_tags_in(request.tags);
        if (!tags) return answer(std::move(tags).error());
        set_tags<batch::TagResourceResponse>(services, context, *request.resource_arn,
                                             *std::move(tags), {}, std::move(answer));
      });
  table.add_later<batch::UntagResource>(
      [&](const Context& context, const batch::UntagResourceRequest& request, auto answer) {
        untag(services, context, request, std::move(answer));
      });
  table.add<batch::ListTagsForResource>(
      [&](const Context& context, const batch::ListTagsForResourceRequest& request)
          -> Outcome<batch::ListTagsForResourceResponse> {
        TRY(check_resource(services, context, *request.resource_arn));
        batch::ListTagsForResourceResponse out;
        out.tags =
            batch_tags_out(TRY(services.control.tags(tagged_arn(context, *request.resource_arn))));
        return out;
      });
}

}  // namespace trainyard::api::batch_api
