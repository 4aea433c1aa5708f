// Implements TagResource, UntagResource and ListTagsForResource for alarms, dashboards and insight
// rules.
#include "shapes/cloudwatch.hpp"

#include <functional>
#include <optional>
#include <utility>

#include "alarms/dashboards.hpp"
#include "alarms/store.hpp"
#include "base/text.hpp"
#include "cloudwatch/common.hpp"
#include "cloudwatch/families.hpp"
#include "insights/insight_rules.hpp"
#include "insights/queries.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

constexpr size_t kTagsMax = 50;  // of one resource, as on AWS

Failure unknown_resource() { return {404, "ResourceNotFoundException", "Unknown"}; }

// Tagged is the resource that an ARN names. An alarm is in the ARN's region.
struct Tagged {
  std::optional<alarms::AlarmKey> alarm;
  std::string dashboard;
  std::string rule = {};  // of Contributor Insights, in the region of the request
};

Outcome<Tagged> tagged_in(const Context& context, const std::string& arn) {
  // arn:PARTITION:cloudwatch:REGION:ACCOUNT:REST
  const auto parts = split(arn, ':');
  if (parts.size() < 6 || parts[0] != "arn" || parts[2] != "cloudwatch")
    return invalid_parameter_value("The value for parameter ResourceARN is not a valid ARN.");
  if (parts[4] != context.principal.account) return unknown_resource();
  constexpr std::string_view kDashboard = "dashboard/";
  if (parts[5].starts_with(kDashboard) && parts.size() == 6)
    return Tagged{{}, std::string(parts[5].substr(kDashboard.size()))};
  constexpr std::string_view kRule = "insight-rule/";
  if (const size_t name = arn.find(kRule);
      parts[5].starts_with(kRule) && parts[3] == context.region)
    return Tagged{{}, "", arn.substr(name + kRule.size())};
  if (parts[5] != "alarm" || parts.size() < 7 || parts[3] != context.region)
    return unknown_resource();
  // Names may have colons.
  const size_t name = size_t(parts[6].data() - arn.data());
  return Tagged{alarms::AlarmKey{std::string(parts[3]), arn.substr(name)}, ""};
}

using Edit = std::function<void(alarms::Tags&)>;

Outcome<Done> edit_alarm(alarms::AlarmStore& store, const alarms::AlarmKey& key, const Edit& edit) {
  bool found = false, too_many = false;
  TRY(store.change([&](const alarms::Alarms& present) -> Result<alarms::Change> {
    alarms::Change change;
    const auto at = present.find(key);
    if (at == present.end()) return change;
    found = true;
    alarms::Alarm alarm = *at->second;
    edit(alarm.settings.tags);
    too_many = alarm.settings.tags.size() > kTagsMax;
    if (!too_many) change.stored.push_back(std::move(alarm));
    return change;
  }));
  if (!found) return unknown_resource();
  if (too_many) return invalid_parameter_value("A resource has at most 50 tags.");
  return Done{};
}

Outcome<Done> edit_dashboard(alarms::Dashboards& dashboards, const std::string& name,
                             const Edit& edit) {
  auto tags = dashboards.tags(name);
  if (!tags && tags.error().kind == Kind::not_found) return unknown_resource();
  auto edited = TRY(std::move(tags));
  edit(edited);
  if (edited.size() > kTagsMax) return invalid_parameter_value("A resource has at most 50 tags.");
  TRY(dashboards.set_tags(name, edited));
  return Done{};
}

Outcome<Done> edit_rule(insights::InsightRules& rules, const Context& context,
                        const std::string& name, const Edit& edit) {
  bool too_many = false;
  const auto done =
      rules.change(context.region, name, [&](insights::InsightRule& rule) -> Result<void> {
        edit(rule.tags);
        too_many = rule.tags.size() > kTagsMax;
        return too_many ? Result<void>(exhausted("a resource has at most 50 tags")) : ok();
      });
  if (too_many) return invalid_parameter_value("A resource has at most 50 tags.");
  if (!done && done.error().kind == Kind::not_found) return unknown_resource();
  TRY(done);
  return Done{};
}

Outcome<Done> edit_tags(const Services& services, const Context& context, const std::string& arn,
                        const Edit& edit) {
  if (!services.alarms || !services.dashboards)
    return unavailable("alarms and dashboards are not available on this server");
  const Tagged tagged = TRY(tagged_in(context, arn));
  if (tagged.alarm) return edit_alarm(*services.alarms, *tagged.alarm, edit);
  if (!tagged.rule.empty() && services.queries)
    return edit_rule(services.queries->rules(), context, tagged.rule, edit);
  return edit_dashboard(*services.dashboards, tagged.dashboard, edit);
}

// As on AWS, a resource that does not exist has no tags.
Outcome<aws::ListTagsForResourceOutput> list_tags(const Services& services, const Context& context,
                                                  const aws::ListTagsForResourceInput& in) {
  if (!services.alarms || !services.dashboards)
    return unavailable("alarms and dashboards are not available on this server");
  const Tagged tagged = TRY(tagged_in(context, *in.resource_arn));
  alarms::Tags tags;
  if (tagged.alarm) {
    const auto all = services.alarms->snapshot();
    if (const auto found = all->find(*tagged.alarm); found != all->end())
      tags = found->second->settings.tags;
  } else if (!tagged.rule.empty()) {
    if (!services.queries) return unavailable("insight rules are not available on this server");
    auto rule = services.queries->rules().find(context.region, tagged.rule);
    if (rule || rule.error().kind != Kind::not_found) tags = TRY(std::move(rule)).tags;
  } else {
    auto of = services.dashboards->tags(tagged.dashboard);
    if (of || of.error().kind != Kind::not_found) tags = TRY(std::move(of));
  }
  aws::ListTagsForResourceOutput out;
  out.tags.emplace();
  for (const auto& [key, value] : tags) out.tags->push_back({.key = key, .value = value});
  return out;
}

}  // namespace

void add_tag_operations(OperationTable& table, const Services& services) {
  table.add<aws::ListTagsForResource>([&services](const Context& context, const auto& in) {
    return list_tags(services, context, in);
  });
  table.add<aws::TagResource>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::TagResourceOutput> {
        TRY(edit_tags(services, context, *in.resource_arn, [&](alarms::Tags& tags) {
          for (const aws::Tag& each : *in.tags) tags[*each.key] = *each.value;
        }));
        return aws::TagResourceOutput{};
      });
  table.add<aws::UntagResource>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::UntagResourceOutput> {
        TRY(edit_tags(services, context, *in.resource_arn, [&](alarms::Tags& tags) {
          for (const std::string& each : *in.tag_keys) tags.erase(each);
        }));
        return aws::UntagResourceOutput{};
      });
}

}  // namespace trainyard::api::cloudwatch
