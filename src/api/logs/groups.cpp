// Implements the operations on log groups: creation, removal, retention.
#include <algorithm>
#include <map>

#include "insights/queries.hpp"
#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "observe/log_definitions.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;

constexpr int64_t kRetentionDays[] = {1,   3,   5,   7,   14,   30,   60,   90,   120,  150,  180,
                                      365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653};

using Tags = std::map<std::string, std::string>;

Outcome<aws::DescribeLogGroupsResponse> describe_groups(observe::Logs& logs, const Context& context,
                                                        const aws::DescribeLogGroupsRequest& in) {
  if (in.log_group_name_prefix && in.log_group_name_pattern)
    return invalid_parameter(
        "LogGroupNamePrefix and LogGroupNamePattern are mutually exclusive parameters.");
  auto groups = TRY_LOGS(logs.groups(context.region, in.log_group_name_prefix.value_or("")));
  std::erase_if(groups, [&](const observe::LogGroupInfo& group) {
    if (in.log_group_name_pattern &&
        group.name.find(*in.log_group_name_pattern) == std::string::npos)
      return true;
    if (in.log_group_class && *in.log_group_class != group.settings.log_class) return true;
    if (!in.log_group_identifiers) return false;
    return std::ranges::none_of(*in.log_group_identifiers, [&](const std::string& identifier) {
      return identifier == group.name || identifier == group_arn(context, group.name);
    });
  });
  // As on AWS, the token is the name of the last group: any text has a position in the list.
  if (in.next_token)
    std::erase_if(groups,
                  [&](const observe::LogGroupInfo& group) { return group.name <= *in.next_token; });
  aws::DescribeLogGroupsResponse out;
  if (const size_t limit = size_t(in.limit.value_or(kListDefault)); groups.size() > limit) {
    groups.resize(limit);
    out.next_token = groups.back().name;
  }
  std::map<std::string, int64_t> filters;
  for (const auto& each :
       TRY_LOGS(logs.definitions().list(context.region, observe::DefinitionKind::metric_filter)))
    ++filters[each.group];
  out.log_groups.emplace();
  for (const auto& group : groups) {
    aws::LogGroup shown{.log_group_name = group.name,
                        .creation_time = to_milliseconds(group.created),
                        .retention_in_days = group.settings.retention_days,
                        .metric_filter_count = filters[group.name],
                        .arn = group_arn(context, group.name) + ":*",
                        .stored_bytes = int64_t(group.stored_bytes),
                        .log_group_class = group.settings.log_class,
                        .log_group_arn = group_arn(context, group.name)};
    if (!group.settings.kms_key_id.empty()) shown.kms_key_id = group.settings.kms_key_id;
    out.log_groups->push_back(std::move(shown));
  }
  return out;
}

Outcome<aws::Nothing> create_group(observe::Logs& logs, const Context& context,
                                   const aws::CreateLogGroupRequest& in) {
  if (in.deletion_protection_enabled.value_or(false))
    return invalid_parameter("deletionProtectionEnabled is not supported.");
  observe::LogGroupSettings settings{.log_class = in.log_group_class.value_or("STANDARD"),
                                     .kms_key_id = in.kms_key_id.value_or(""),
                                     .tags = in.tags.value_or(Tags{})};
  TRY_LOGS(logs.create_group(context.region, *in.log_group_name, settings));
  return aws::Nothing{};
}

Outcome<aws::Nothing> set_retention(observe::Logs& logs, const Context& context,
                                    const std::string& group, std::optional<int64_t> days) {
  if (days && std::ranges::find(kRetentionDays, *days) == std::end(kRetentionDays)) {
    std::string all;
    for (const int64_t each : kRetentionDays)
      all.append(all.empty() ? "" : ", ").append(std::to_string(each));
    return invalid_parameter("1 validation error detected: Value '" + std::to_string(*days) +
                             "' at 'retentionInDays' failed to satisfy constraint: Member must "
                             "satisfy enum value set: [" +
                             all + "]");
  }
  TRY_LOGS(logs.change_group(context.region, group,
                             [&](observe::LogGroupSettings& settings) -> Result<void> {
                               settings.retention_days = days;
                               return ok();
                             }));
  return aws::Nothing{};
}

}  // namespace

void add_groups(OperationTable& table, const Services& services) {
  observe::Logs& logs = services.logs;
  table.add<aws::CreateLogGroup>(
      [&logs](const Context& context, const auto& in) { return create_group(logs, context, in); });
  table.add<aws::DeleteLogGroup>(
      [&logs, router = services.log_router, queries = services.queries](
          const Context& context, const aws::DeleteLogGroupRequest& in) -> Outcome<aws::Nothing> {
        TRY_LOGS(logs.delete_group(context.region, *in.log_group_name));
        if (router) TRY_LOGS(router->reload());
        if (queries) queries->forget(context.region, *in.log_group_name);
        return aws::Nothing{};
      });
  table.add<aws::DescribeLogGroups>([&logs](const Context& context, const auto& in) {
    return describe_groups(logs, context, in);
  });
  table.add<aws::PutRetentionPolicy>(
      [&logs](const Context& context, const aws::PutRetentionPolicyRequest& in) {
        return set_retention(logs, context, *in.log_group_name, in.retention_in_days);
      });
  table.add<aws::DeleteRetentionPolicy>(
      [&logs](const Context& context, const aws::DeleteRetentionPolicyRequest& in) {
        return set_retention(logs, context, *in.log_group_name, {});
      });
}

}  // namespace trainyard::api::logs
