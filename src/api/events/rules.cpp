// Implements the operations on rules and their tags.
#include "base/json.hpp"
#include "base/text.hpp"
#include "events/common.hpp"

namespace trainyard::api::events {
namespace {

using notify::EventBus;
using notify::Rule;

Outcome<notify::Tags> tags_of(const std::vector<aws::Tag>& tags, notify::Tags present) {
  for (const auto& tag : tags) {
    if (tag.key->starts_with("aws:"))
      return events_failure("ValidationException", "Tag keys cannot begin with aws:");
    present[*tag.key] = *tag.value;
  }
  if (present.size() > kTagsMax)
    return events_failure("LimitExceededException",
                          "A rule has at most " + std::to_string(kTagsMax) + " tags.");
  return present;
}

Failure invalid_pattern(const std::string& why) {
  return events_failure("InvalidEventPatternException",
                        "Event pattern is not valid. Reason: " + why);
}

Outcome<aws::PutRuleResponse> put_rule(EventBus& bus, const Context& context,
                                       const aws::PutRuleRequest& in) {
  TRY(check_bus(context, in.event_bus_name));
  Rule rule;
  rule.arn = bus.rule_arn(context.region, *in.name);
  rule.pattern = in.event_pattern.value_or("");
  if (in.schedule_expression && !in.schedule_expression->empty())
    return events_failure("ValidationException",
                          "ScheduleExpression: this server offers no schedules; a timer of the "
                          "system may call PutEvents.");
  if (rule.pattern.empty())
    return events_failure("ValidationException",
                          "Parameter(s) EventPattern or ScheduleExpression must be specified.");
  const auto compiled = notify::Pattern::compile(rule.pattern, notify::kEventPatternBytesMax);
  if (!compiled) return invalid_pattern(compiled.error().message);
  const std::string state = in.state.value_or("ENABLED");
  rule.enabled = state != "DISABLED";
  rule.description = in.description.value_or("");
  rule.role_arn = in.role_arn.value_or("");
  rule.creator = context.principal.account;
  if (in.tags) rule.tags = TRY(tags_of(*in.tags, {}));
  const std::string arn = rule.arn;
  TRY(with_failure(failure_for, bus.put_rule(std::move(rule))));
  return aws::PutRuleResponse{.rule_arn = arn};
}

// Returns the region's rules whose names begin with a prefix, ordered by name.
std::vector<std::shared_ptr<const notify::KnownRule>> rules_of(EventBus& bus,
                                                               const Context& context,
                                                               const std::string& prefix) {
  std::vector<std::shared_ptr<const notify::KnownRule>> found;
  const auto all = bus.notifications().catalogue();
  const std::string start = bus.rule_arn(context.region, prefix);
  for (auto at = all->rules.lower_bound(start);
       at != all->rules.end() && at->first.starts_with(start); ++at)
    found.push_back(at->second);
  return found;
}

std::optional<std::string> if_given(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Outcome<aws::ListRulesResponse> list_rules(EventBus& bus, const Context& context,
                                           const aws::ListRulesRequest& in) {
  TRY(check_bus(context, in.event_bus_name));
  const auto rules = rules_of(bus, context, in.name_prefix.value_or(""));
  std::vector<std::string> names;
  for (const auto& rule : rules) names.push_back(notify::name_of_arn(rule->arn));
  const PageOf page = TRY(page_of(names, in.next_token, in.limit));
  aws::ListRulesResponse out{.rules = std::vector<aws::Rule>(), .next_token = page.next_token};
  for (size_t i = page.first; i < page.end; ++i)
    out.rules->push_back({.name = names[i],
                          .arn = rules[i]->arn,
                          .event_pattern = if_given(rules[i]->pattern),
                          .state = rules[i]->enabled ? "ENABLED" : "DISABLED",
                          .description = if_given(rules[i]->description),
                          .role_arn = if_given(rules[i]->role_arn),
                          .event_bus_name = "default"});
  return out;
}

Outcome<aws::DescribeRuleResponse> describe_rule(EventBus& bus, const Context& context,
                                                 const aws::DescribeRuleRequest& in) {
  TRY(check_bus(context, in.event_bus_name));
  const auto all = bus.notifications().catalogue();
  const Rule* rule = all->rule(bus.rule_arn(context.region, *in.name));
  if (!rule) return unknown_rule(*in.name);
  return aws::DescribeRuleResponse{.name = *in.name,
                                   .arn = rule->arn,
                                   .event_pattern = if_given(rule->pattern),
                                   .state = rule->enabled ? "ENABLED" : "DISABLED",
                                   .description = if_given(rule->description),
                                   .role_arn = if_given(rule->role_arn),
                                   .event_bus_name = "default",
                                   .created_by = rule->creator};
}

Outcome<aws::Nothing> enable(EventBus& bus, const Context& context, const std::string& name,
                             const std::optional<std::string>& bus_name, bool enabled) {
  TRY(check_bus(context, bus_name));
  TRY(with_failure(failure_for,
                   bus.change_rule(bus.rule_arn(context.region, name), [&](Rule& rule) {
                     rule.enabled = enabled;
                     return ok();
                   })));
  return aws::Nothing{};
}

// -- tags

Outcome<aws::TagResourceResponse> tag(EventBus& bus, const aws::TagResourceRequest& in) {
  std::optional<Failure> failure;
  const auto changed = bus.change_rule(*in.resource_arn, [&](Rule& rule) -> Result<void> {
    auto tags = tags_of(*in.tags, rule.tags);
    if (tags) {
      rule.tags = std::move(*tags);
      return {};
    }
    failure = tags.failure(shapes::events::kService);
    return invalid(failure->message);
  });
  if (failure) return *failure;
  TRY(with_failure(failure_for, changed));
  return aws::TagResourceResponse{};
}

Outcome<aws::UntagResourceResponse> untag(EventBus& bus, const aws::UntagResourceRequest& in) {
  TRY(with_failure(failure_for, bus.change_rule(*in.resource_arn, [&](Rule& rule) {
    for (const auto& key : *in.tag_keys) rule.tags.erase(key);
    return ok();
  })));
  return aws::UntagResourceResponse{};
}

Outcome<aws::ListTagsForResourceResponse> list_tags(EventBus& bus,
                                                    const aws::ListTagsForResourceRequest& in) {
  const auto all = bus.notifications().catalogue();
  const Rule* rule = all->rule(*in.resource_arn);
  if (!rule) return unknown_rule(notify::name_of_arn(*in.resource_arn));
  aws::ListTagsForResourceResponse out{.tags = std::vector<aws::Tag>()};
  for (const auto& [key, value] : rule->tags) out.tags->push_back({.key = key, .value = value});
  return out;
}

void add_tag_operations(OperationTable& table, const Services& services) {
  table.add<aws::TagResource>(
      [&services](const Context&, const auto& in) -> Outcome<aws::TagResourceResponse> {
        return tag(*TRY(bus_of(services)), in);
      });
  table.add<aws::UntagResource>(
      [&services](const Context&, const auto& in) -> Outcome<aws::UntagResourceResponse> {
        return untag(*TRY(bus_of(services)), in);
      });
  table.add<aws::ListTagsForResource>(
      [&services](const Context&, const auto& in) -> Outcome<aws::ListTagsForResourceResponse> {
        return list_tags(*TRY(bus_of(services)), in);
      });
}

}  // namespace

void add_rules(OperationTable& table, const Services& services) {
  table.add<aws::PutRule>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::PutRuleResponse> {
        return put_rule(*TRY(bus_of(services)), context, in);
      });
  table.add<aws::DeleteRule>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::Nothing> {
        EventBus& bus = *TRY(bus_of(services));
        TRY(check_bus(context, in.event_bus_name));
        TRY(with_failure(failure_for, bus.delete_rule(bus.rule_arn(context.region, *in.name))));
        return aws::Nothing{};
      });
  table.add<aws::ListRules>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::ListRulesResponse> {
        return list_rules(*TRY(bus_of(services)), context, in);
      });
  table.add<aws::DescribeRule>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::DescribeRuleResponse> {
        return describe_rule(*TRY(bus_of(services)), context, in);
      });
  table.add<aws::EnableRule>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::Nothing> {
        return enable(*TRY(bus_of(services)), context, *in.name, in.event_bus_name, true);
      });
  table.add<aws::DisableRule>(
      [&services](const Context& context, const auto& in) -> Outcome<aws::Nothing> {
        return enable(*TRY(bus_of(services)), context, *in.name, in.event_bus_name, false);
      });
  add_tag_operations(table, services);
}

}  // namespace trainyard::api::events
