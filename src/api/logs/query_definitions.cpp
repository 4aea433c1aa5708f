// Implements the operations on saved queries of Logs Insights.
#include <algorithm>

#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "insights/parser.hpp"
#include "logs/common.hpp"
#include "observe/log_definitions.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using observe::DefinitionKind;

constexpr size_t kDefinitionsMax = 1'000;  // of a region, as AWS

// The body of a definition, as it is stored.
struct SavedQuery {
  std::string name, query;
  std::vector<std::string> groups;
};
constexpr auto kSavedQuery =
    complete(json_record<SavedQuery>("query definition", [](auto& side, auto& saved) {
      side("name", saved.name);
      side("query", saved.query);
      side("groups", saved.groups);
    }));

Failure no_definition() {
  return resource_not_found("The specified query definition does not exist.");
}

Outcome<aws::PutQueryDefinitionResponse> put_definition(const Services& services,
                                                        const Context& context,
                                                        const aws::PutQueryDefinitionRequest& in) {
  if (in.query_language.value_or("CWLI") != "CWLI")
    return invalid_parameter(
        "queryLanguage: only CWLI, the language of Logs Insights, is offered.");
  if (in.parameters && !in.parameters->empty())
    return invalid_parameter("parameters of query definitions are not supported.");
  observe::LogDefinitions& definitions = services.logs.definitions();
  if (in.query_definition_id && !TRY_LOGS(definitions.find(context.region, DefinitionKind::query,
                                                           "", *in.query_definition_id)))
    return no_definition();
  const std::string id = in.query_definition_id.value_or(services.random.uuid());
  const SavedQuery query{*in.name, *in.query_string,
                         in.log_group_names.value_or(std::vector<std::string>{})};
  const auto kept =
      definitions.put(context.region, DefinitionKind::query,
                      {"", id, dump(kSavedQuery.write(query)), context.now}, kDefinitionsMax);
  if (!kept && kept.error().kind == Kind::exhausted) return limit_exceeded(kept.error().message);
  TRY_LOGS(kept);
  return aws::PutQueryDefinitionResponse{.query_definition_id = id};
}

Result<aws::QueryDefinition> definition_of(const observe::LogDefinition& stored) {
  auto query = TRY(kSavedQuery.read(TRY(parse_json(stored.body))));
  return aws::QueryDefinition{.query_language = "CWLI",
                              .query_definition_id = stored.name,
                              .name = std::move(query.name),
                              .query_string = std::move(query.query),
                              .last_modified = to_milliseconds(stored.changed),
                              .log_group_names = std::move(query.groups)};
}

Outcome<aws::DescribeQueryDefinitionsResponse> describe_definitions(
    const Services& services, const Context& context,
    const aws::DescribeQueryDefinitionsRequest& in) {
  aws::DescribeQueryDefinitionsResponse out;
  out.query_definitions.emplace();
  const std::string prefix = in.query_definition_name_prefix.value_or("");
  for (const auto& stored :
       TRY_LOGS(services.logs.definitions().list(context.region, DefinitionKind::query, ""))) {
    auto definition = TRY_LOGS(definition_of(stored));
    if (definition.name->starts_with(prefix))
      out.query_definitions->push_back(std::move(definition));
  }
  // Names need not be unique, so the id follows.
  const auto name_of = [](const aws::QueryDefinition& each) {
    return *each.name + "\n" + *each.query_definition_id;
  };
  std::ranges::sort(*out.query_definitions, {}, name_of);
  out.next_token = TRY(cut_page(*out.query_definitions, size_t(in.max_results.value_or(1000)),
                                in.next_token, name_of));
  return out;
}

}  // namespace

void add_query_definitions(OperationTable& table, const Services& services) {
  table.add<aws::PutQueryDefinition>([services](const Context& context, const auto& in) {
    return put_definition(services, context, in);
  });
  table.add<aws::DescribeQueryDefinitions>([services](const Context& context, const auto& in) {
    return describe_definitions(services, context, in);
  });
  table.add<aws::DeleteQueryDefinition>(
      [services](const Context& context, const aws::DeleteQueryDefinitionRequest& in)
          -> Outcome<aws::DeleteQueryDefinitionResponse> {
        const auto removed = services.logs.definitions().remove(
            context.region, DefinitionKind::query, "", *in.query_definition_id);
        if (!removed && removed.error().kind == Kind::not_found) return no_definition();
        TRY_LOGS(removed);
        return aws::DeleteQueryDefinitionResponse{.success = true};
      });
}

}  // namespace trainyard::api::logs
