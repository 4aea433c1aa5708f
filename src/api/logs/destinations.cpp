// Implements the operations on destinations of subscription filters: those that clients define, and
// the webhooks of the configuration.
#include "log_routing/destinations.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;

// AWS's model has no limit. A policy of IAM may have 10,240 characters.
constexpr size_t kPolicyBytesMax = 51'200;

aws::Destination to_shape(const Context& context, const std::string& name,
                          const log_routing::LogDestination& destination) {
  aws::Destination out{.destination_name = name,
                       .target_arn = destination.target_arn,
                       .role_arn = destination.role_arn,
                       .arn = arn_of(context, "destination", name),
                       .creation_time = to_milliseconds(destination.created)};
  if (!destination.access_policy.empty()) out.access_policy = destination.access_policy;
  return out;
}

Outcome<aws::PutDestinationResponse> put_destination(log_routing::LogRouter& router,
                                                     const Context& context,
                                                     const aws::PutDestinationRequest& in) {
  log_routing::LogDestination wanted{.target_arn = *in.target_arn,
                                     .role_arn = *in.role_arn,
                                     .tags = in.tags.value_or(std::map<std::string, std::string>{}),
                                     .created = context.now};
  auto stored = router.destinations().put(context.region, *in.destination_name, std::move(wanted));
  if (!stored && stored.error().kind == Kind::exhausted)
    return limit_exceeded(stored.error().message);
  const auto destination = TRY_LOGS(std::move(stored));
  TRY_LOGS(router.reload());
  return aws::PutDestinationResponse{.destination =
                                         to_shape(context, *in.destination_name, destination)};
}

Outcome<aws::Nothing> put_policy(log_routing::LogRouter& router, const Context& context,
                                 const aws::PutDestinationPolicyRequest& in) {
  if (in.access_policy->size() > kPolicyBytesMax || !parse_json(*in.access_policy))
    return invalid_parameter("Invalid accessPolicy: it is not a JSON document of at most " +
                             std::to_string(kPolicyBytesMax) + " bytes.");
  const auto changed =
      router.destinations().change(context.region, *in.destination_name,
                                   [&](log_routing::LogDestination& destination) -> Result<void> {
                                     destination.access_policy = *in.access_policy;
                                     return ok();
                                   });
  if (!changed && changed.error().kind == Kind::not_found)
    return invalid_parameter(changed.error().message);
  TRY_LOGS(changed);
  return aws::Nothing{};
}

// The URLs of webhooks are not shown, since they may have secrets.
Outcome<aws::DescribeDestinationsResponse> describe(log_routing::LogRouter& router,
                                                    const Context& context,
                                                    const aws::DescribeDestinationsRequest& in) {
  aws::DescribeDestinationsResponse out;
  out.destinations.emplace();
  const std::string prefix = in.destination_name_prefix.value_or("");
  for (const auto& webhook : router.targets().webhooks())
    if (webhook.is_destination() && webhook.name.starts_with(prefix))
      out.destinations->push_back(
          {.destination_name = webhook.name, .arn = arn_of(context, "destination", webhook.name)});
  for (const auto& [name, destination] : TRY_LOGS(router.destinations().list(context.region)))
    if (name.starts_with(prefix) && !router.targets().is_destination(name))
      out.destinations->push_back(to_shape(context, name, destination));
  const auto name_of = [](const aws::Destination& each) { return *each.destination_name; };
  std::ranges::sort(*out.destinations, {}, name_of);
  out.next_token = TRY(
      cut_page(*out.destinations, size_t(in.limit.value_or(kListDefault)), in.next_token, name_of));
  return out;
}

Outcome<aws::Nothing> remove(log_routing::LogRouter& router, const Context& context,
                             const aws::DeleteDestinationRequest& in) {
  const auto removed = router.destinations().remove(context.region, *in.destination_name);
  if (!removed && removed.error().kind == Kind::not_found)
    return resource_not_found(removed.error().message);
  TRY_LOGS(removed);
  TRY_LOGS(router.reload());
  return aws::Nothing{};
}

}  // namespace

void add_destinations(OperationTable& table, const Services& services) {
  if (!services.log_router) return;
  log_routing::LogRouter& router = *services.log_router;
  table.add<aws::PutDestination>([&router](const Context& context, const auto& in) {
    return put_destination(router, context, in);
  });
  table.add<aws::PutDestinationPolicy>([&router](const Context& context, const auto& in) {
    return put_policy(router, context, in);
  });
  table.add<aws::DescribeDestinations>(
      [&router](const Context& context, const auto& in) { return describe(router, context, in); });
  table.add<aws::DeleteDestination>(
      [&router](const Context& context, const auto& in) { return remove(router, context, in); });
}

}  // namespace trainyard::api::logs
