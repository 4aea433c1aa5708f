// Implements the operations on job definitions.
#include <algorithm>

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch_api/requests.hpp"
#include "operations/shared_directories.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using trainyard::batch::ResourceChange;

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

Outcome<batch::DescribeJobDefinitionsResponse> describe_definitions(
    const Services& services, const Context& context,
    const batch::DescribeJobDefinitionsRequest& request) {
  const auto results_max = size_t(TRY(results_max_of(request.max_results)));
  batch::DescribeJobDefinitionsResponse out;
  out.job_definitions.emplace();
  std::vector<DefinitionName> wanted;
  for (const auto& each : request.job_definitions.value_or(std::vector<std::string>()))
    wanted.push_back(definition_name_in(each));
  if (wanted.size() > size_t(kPageMaxBatch))
    return client_exception("jobDefinitions names at most " + std::to_string(kPageMaxBatch));
  const bool all = wanted.empty() && !request.job_definition_name;
  if (wanted.empty()) wanted.push_back({request.job_definition_name.value_or(""), {}});
  for (const DefinitionName& each : wanted) {
    if (each.name.empty() && !all) continue;  // no definition has an empty name
    ledger::DefinitionQuery query;
    query.region = context.region;
    query.name = each.name;
    query.revision = each.revision;
    if (request.status) query.active = *request.status == "ACTIVE";
    query.definitions_max = results_max - out.job_definitions->size() + 1;
    if (request.next_token) {
      const DefinitionName last = definition_name_in(*request.next_token);
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
  const DefinitionName which = definition_name_in(*request.job_definition);
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

}  // namespace

void add_definitions(OperationTable& table, const Settings& settings, const Services& services) {
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
}

}  // namespace trainyard::api::batch_api
