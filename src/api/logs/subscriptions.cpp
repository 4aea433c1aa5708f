// Implements the operations on subscription filters of log groups. Their destinations are webhooks,
// which only the configuration defines, log groups, and the names of both: [log_webhooks.NAME] and
// PutDestination make arn:aws:logs:REGION:ACCOUNT:destination:NAME.
#include "log_routing/definitions.hpp"
#include "log_routing/destinations.hpp"
#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "observe/filter_pattern.hpp"
#include "observe/log_definitions.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using observe::DefinitionKind;

constexpr const char* kOffers =
    "a subscription filter sends to a webhook of its configuration, to a destination, or to "
    "a log group.)";

// Checks that the destination of the ARN exists.
Outcome<Done> check_destination(observe::Logs& logs, log_routing::LogRouter& router,
                                const Context& context,
                                const aws::PutSubscriptionFilterRequest& in) {
  std::string arn = *in.destination_arn;
  const auto& targets = router.targets();
  if (const auto name = targets.destination_of(context.region, arn); name && !targets.find(arn)) {
    const auto destination = router.destinations().find(context.region, *name);
    if (destination) arn = destination->target_arn;
  }
  const auto target = targets.find(arn);
  if (target && target->webhook.empty()) {
    const auto& [region, group] = target->group;
    if (region == context.region && group == *in.log_group_name)
      return invalid_parameter("The log group of a subscription filter cannot be its destination.");
    TRY_LOGS(logs.group(region, group));
    return Done{};
  }
  // A webhook exists in each region, but its ARN names one region.
  if (target && (!arn.starts_with("arn:aws:logs:") || targets.destination_of(context.region, arn)))
    return Done{};
  if (arn.starts_with("arn:aws:lambda:"))
    return invalid_parameter(
        std::string("Could not execute the lambda function. Make sure you have given CloudWatch "
                    "Logs permission to execute your function. (This server has no functions; ") +
        kOffers);
  if (arn.starts_with("arn:aws:kinesis:") || arn.starts_with("arn:aws:firehose:"))
    return invalid_parameter(
        std::string("Could not deliver test message to specified destination. Check if the "
                    "destination is valid. (This server has no streams; ") +
        kOffers);
  return invalid_parameter(
      "The destination ARN names neither a destination nor a webhook of this server's "
      "configuration: " +
      arn);
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
  TRY(check_destination(logs, router, context, in));
  log_routing::SubscriptionFilter filter{.pattern = *in.filter_pattern,
                                         .destination_arn = *in.destination_arn,
                                         .role_arn = in.role_arn.value_or(""),
                                         .distribution = in.distribution.value_or("ByLogStream"),
                                         .created = context.now};
  if (const auto before =
          TRY_LOGS(logs.definitions().find(context.region, DefinitionKind::subscription_filter,
                                           *in.log_group_name, *in.filter_name)))
    filter.created = TRY_LOGS(log_routing::SubscriptionFilter::from(before->body)).created;
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
}

}  // namespace trainyard::api::logs
