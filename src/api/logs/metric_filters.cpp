// Implements the operations on metric filters of log groups.
#include <algorithm>

#include "log_routing/definitions.hpp"
#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "observe/filter_pattern.hpp"
#include "observe/log_definitions.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using observe::DefinitionKind;

Outcome<aws::Nothing> put_filter(observe::Logs& logs, log_routing::LogRouter& router,
                                 const Context& context, const aws::PutMetricFilterRequest& in) {
  if (in.apply_on_transformed_logs.value_or(false) || in.field_selection_criteria ||
      in.emit_system_field_dimensions)
    return invalid_parameter(
        "applyOnTransformedLogs, fieldSelectionCriteria and emitSystemFieldDimensions are not "
        "supported.");
  const aws::MetricTransformation& transformation = in.metric_transformations->front();
  log_routing::MetricFilter filter{
      .pattern = *in.filter_pattern,
      .metric_namespace = *transformation.metric_namespace,
      .metric_name = *transformation.metric_name,
      .value = *transformation.metric_value,
      .default_value = transformation.default_value,
      .dimensions = transformation.dimensions.value_or(std::map<std::string, std::string>{}),
      .unit = transformation.unit.value_or("None"),
      .created = context.now};
  if (filter.metric_namespace.empty() || filter.metric_name.empty())
    return invalid_parameter("A metric filter needs a metricNamespace and a metricName.");
  TRY_LOGS(filter.check());
  const auto kept =
      logs.definitions().put(context.region, DefinitionKind::metric_filter,
                             {*in.log_group_name, *in.filter_name, filter.text(), context.now},
                             log_routing::kMetricFiltersMax);
  if (!kept && kept.error().kind == Kind::exhausted) return limit_exceeded(kept.error().message);
  TRY_LOGS(kept);
  TRY_LOGS(router.reload());
  return aws::Nothing{};
}

Outcome<aws::DescribeMetricFiltersResponse> describe_filters(
    observe::Logs& logs, const Context& context, const aws::DescribeMetricFiltersRequest& in) {
  aws::DescribeMetricFiltersResponse out;
  out.metric_filters.emplace();
  for (const auto& stored : TRY_LOGS(logs.definitions().list(
           context.region, DefinitionKind::metric_filter, in.log_group_name))) {
    const auto filter = TRY_LOGS(log_routing::MetricFilter::from(stored.body));
    if (!stored.name.starts_with(in.filter_name_prefix.value_or("")) ||
        filter.metric_name != in.metric_name.value_or(filter.metric_name) ||
        filter.metric_namespace != in.metric_namespace.value_or(filter.metric_namespace))
      continue;
    aws::MetricTransformation transformation{.metric_name = filter.metric_name,
                                             .metric_namespace = filter.metric_namespace,
                                             .metric_value = filter.value,
                                             .default_value = filter.default_value,
                                             .unit = filter.unit};
    if (!filter.dimensions.empty()) transformation.dimensions = filter.dimensions;
    if (filter.unit == "None") transformation.unit.reset();
    out.metric_filters->push_back({.filter_name = stored.name,
                                   .filter_pattern = filter.pattern,
                                   .metric_transformations = {{std::move(transformation)}},
                                   .creation_time = to_milliseconds(filter.created),
                                   .log_group_name = stored.group});
  }
  const auto name_of = [](const aws::MetricFilter& each) {
    return *each.log_group_name + ":" + *each.filter_name;  // neither has a colon
  };
  std::ranges::sort(*out.metric_filters, {}, name_of);
  out.next_token = TRY(cut_page(*out.metric_filters, size_t(in.limit.value_or(kListDefault)),
                                in.next_token, name_of));
  return out;
}

Outcome<aws::Nothing> delete_filter(observe::Logs& logs, log_routing::LogRouter& router,
                                    const Context& context,
                                    const aws::DeleteMetricFilterRequest& in) {
  const auto removed = logs.definitions().remove(context.region, DefinitionKind::metric_filter,
                                                 *in.log_group_name, *in.filter_name);
  if (!removed && removed.error().kind == Kind::not_found &&
      !removed.error().is(observe::LogResource::group))
    return resource_not_found("The specified metric filter does not exist.");
  TRY_LOGS(removed);
  TRY_LOGS(router.reload());
  return aws::Nothing{};
}

Outcome<aws::TestMetricFilterResponse> test_filter(const aws::TestMetricFilterRequest& in) {
  const auto pattern = TRY_LOGS(observe::FilterPattern::parse(*in.filter_pattern));
  aws::TestMetricFilterResponse out;
  out.matches.emplace();
  for (size_t i = 0; i < in.log_event_messages->size(); ++i) {
    const std::string& message = (*in.log_event_messages)[i];
    auto values = pattern.extract(message);
    if (!values) continue;
    out.matches->push_back({.event_number = int64_t(i) + 1,
                            .event_message = message,
                            .extracted_values = *std::move(values)});
  }
  return out;
}

}  // namespace

void add_metric_filters(OperationTable& table, const Services& services) {
  observe::Logs& logs = services.logs;
  table.add<aws::TestMetricFilter>([](const Context&, const auto& in) { return test_filter(in); });
  table.add<aws::DescribeMetricFilters>([&logs](const Context& context, const auto& in) {
    return describe_filters(logs, context, in);
  });
  if (!services.log_router) return;
  log_routing::LogRouter& router = *services.log_router;
  table.add<aws::PutMetricFilter>([&logs, &router](const Context& context, const auto& in) {
    return put_filter(logs, router, context, in);
  });
  table.add<aws::DeleteMetricFilter>([&logs, &router](const Context& context, const auto& in) {
    return delete_filter(logs, router, context, in);
  });
}

}  // namespace trainyard::api::logs
