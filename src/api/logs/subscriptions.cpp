// Subscription filters of log groups. Their destinations are webhooks, which only the configuration
// defines: [log_webhooks.NAME] has the ARN arn:aws:logs:REGION:ACCOUNT:destination:NAME.
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

std::string destination_arn(const Context& context, const std::string& name) {
  return "arn:aws:logs:" + context.region + ":" + context.principal.account +
         ":destination:" + name;
}

// The name of the webhook that an ARN names.
Outcome<std::string> webhook_of(const log_routing::LogRouter& router, const Context& context,
                                const std::string& arn) {
  if (arn.starts_with("arn:aws:lambda:"))
    return invalid_parameter(
        "Could not execute the lambda function. Make sure you have given CloudWatch Logs "
        "permission to execute your function. (This server has no functions; a subscription "
        "filter sends to a webhook of its configuration, " +
        destination_arn(context, "NAME") + ".)");
  if (arn.starts_with("arn:aws:kinesis:") || arn.starts_with("arn:aws:firehose:"))
    return invalid_parameter(
        "Could not deliver test message to specified destination. Check if the destination is "
        "valid. (This server has no streams; a subscription filter sends to a webhook of its "
        "configuration, " +
        destination_arn(context, "NAME") + ".)");
  const std::string prefix = destination_arn(context, "");
  const std::string name = arn.starts_with(prefix) ? arn.substr(prefix.size()) : "";
  if (!router.webhook(name))
    return invalid_parameter(
        "The destination ARN is not one of a webhook of this server's "
        "configuration: " +
        arn);
  return name;
}

Outcome<aws::Nothing> put_filter(observe::Logs& logs, log_routing::LogRouter& router,
                                 const Context& context,
                                 const aws::PutSubscriptionFilterRequest& in) {
  if (in.apply_on_transformed_logs.value_or(false) || in.field_selection_criteria ||
      in.emit_system_fields)
    return invalid_parameter(
        "applyOnTransformedLogs, fieldSelectionCriteria and emitSystemFields are not supported.");
  TRY_LOGS(logs.group(context.region, *in.log_group_name));
  TRY_LOGS(observe::FilterPattern::parse(*in.filter_pattern));
  const log_routing::SubscriptionFilter filter{
      .pattern = *in.filter_pattern,
      .destination_arn = *in.destination_arn,
      .target = TRY(webhook_of(router, context, *in.destination_arn)),
      .role_arn = in.role_arn.value_or(""),
      .distribution = in.distribution.value_or("ByLogStream"),
      .created = context.now};
  const auto kept =
      logs.definitions().put(context.region, DefinitionKind::subscription_filter,
                             {*in.log_group_name, *in.filter_name, filter.text(), context.now},
                             log_routing::kSubscriptionFiltersMax);
  if (!kept && kept.error().kind == Kind::exhausted) return limit_exceeded(kept.error().message);
  TRY_LOGS(kept);
  TRY_LOGS(router.reload());
  return aws::Nothing{};
}

Outcome<aws::DescribeSubscriptionFiltersResponse> describe_filters(
    observe::Logs& logs, const Context& context,
    const aws::DescribeSubscriptionFiltersRequest& in) {
  aws::DescribeSubscriptionFiltersResponse out;
  out.subscription_filters.emplace();
  for (const auto& stored : TRY_LOGS(logs.definitions().list(
           context.region, DefinitionKind::subscription_filter, *in.log_group_name))) {
    if (!stored.name.starts_with(in.filter_name_prefix.value_or(""))) continue;
    const auto filter = TRY_LOGS(log_routing::SubscriptionFilter::from(stored.body));
    aws::SubscriptionFilter shown{.filter_name = stored.name,
                                  .log_group_name = stored.group,
                                  .filter_pattern = filter.pattern,
                                  .destination_arn = filter.destination_arn,
                                  .distribution = filter.distribution,
                                  .creation_time = to_milliseconds(filter.created)};
    if (!filter.role_arn.empty()) shown.role_arn = filter.role_arn;
    out.subscription_filters->push_back(std::move(shown));
  }
  out.next_token = TRY(
      cut_page(*out.subscription_filters, size_t(in.limit.value_or(kListDefault)), in.next_token,
               [](const aws::SubscriptionFilter& each) { return *each.filter_name; }));
  return out;
}

Outcome<aws::Nothing> delete_filter(observe::Logs& logs, log_routing::LogRouter& router,
                                    const Context& context,
                                    const aws::DeleteSubscriptionFilterRequest& in) {
  const auto removed = logs.definitions().remove(
      context.region, DefinitionKind::subscription_filter, *in.log_group_name, *in.filter_name);
  if (!removed && removed.error().kind == Kind::not_found &&
      !removed.error().is(observe::LogResource::group))
    return resource_not_found("The specified subscription filter does not exist.");
  TRY_LOGS(removed);
  TRY_LOGS(router.reload());
  return aws::Nothing{};
}

// The URLs stay in the configuration: they may have secrets.
Outcome<aws::DescribeDestinationsResponse> describe_destinations(
    const log_routing::LogRouter& router, const Context& context,
    const aws::DescribeDestinationsRequest& in) {
  aws::DescribeDestinationsResponse out;
  out.destinations.emplace();
  for (const auto& webhook : router.webhooks())
    if (webhook.name.starts_with(in.destination_name_prefix.value_or("")))
      out.destinations->push_back(
          {.destination_name = webhook.name, .arn = destination_arn(context, webhook.name)});
  const auto name_of = [](const aws::Destination& each) { return *each.destination_name; };
  std::ranges::sort(*out.destinations, {}, name_of);
  out.next_token = TRY(
      cut_page(*out.destinations, size_t(in.limit.value_or(kListDefault)), in.next_token, name_of));
  return out;
}

}  // namespace

void add_subscriptions(OperationTable& table, const Services& services) {
  observe::Logs& logs = services.logs;
  table.add<aws::DescribeSubscriptionFilters>([&logs](const Context& context, const auto& in) {
    return describe_filters(logs, context, in);
  });
  if (!services.log_router) return;
  log_routing::LogRouter& router = *services.log_router;
  table.add<aws::PutSubscriptionFilter>([&logs, &router](const Context& context, const auto& in) {
    return put_filter(logs, router, context, in);
  });
  table.add<aws::DeleteSubscriptionFilter>(
      [&logs, &router](const Context& context, const auto& in) {
        return delete_filter(logs, router, context, in);
      });
  table.add<aws::DescribeDestinations>([&router](const Context& context, const auto& in) {
    return describe_destinations(router, context, in);
  });
}

}  // namespace trainyard::api::logs
