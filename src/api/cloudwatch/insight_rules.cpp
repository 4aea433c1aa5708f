// Implements the operations on rules of Contributor Insights.
#include "shapes/cloudwatch.hpp"

#include <algorithm>
#include <memory>

#include "auth/authorizer.hpp"
#include "base/text.hpp"
#include "cloudwatch/common.hpp"
#include "cloudwatch/families.hpp"
#include "insights/contributor_report.hpp"
#include "insights/contributor_rule.hpp"
#include "insights/insight_rules.hpp"
#include "insights/queries.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;
using insights::InsightRule;
using insights::InsightRules;

constexpr const char* kSchema = R"({"Name" : "CloudWatchLogRule", "Version" : 1})";
constexpr const char* kNoRules = "insight rules are not available on this server";
constexpr const char* kEnabled = "ENABLED";
constexpr const char* kDisabled = "DISABLED";
constexpr int64_t kRulesDefault = 500;  // of a page, as AWS
constexpr int64_t kContributorsDefault = 10, kContributorsMax = 100;
constexpr std::string_view kMetrics[] = {"UniqueContributors",
                                         "MaxContributorValue",
                                         "SampleCount",
                                         "Sum",
                                         "Minimum",
                                         "Maximum",
                                         "Average"};

Outcome<aws::PutInsightRuleOutput> put_rule(InsightRules& rules, const Services&,
                                            const Context& context,
                                            const aws::PutInsightRuleInput& in) {
  if (in.apply_on_transformed_logs.value_or(false))
    return invalid_parameter_value("ApplyOnTransformedLogs is not supported.");
  const std::string state = in.rule_state.value_or(kEnabled);
  if (state != kEnabled && state != kDisabled)
    return invalid_parameter_value("The parameter RuleState must be ENABLED or DISABLED.");
  InsightRule rule{.definition = *in.rule_definition};
  if (state == kDisabled) rule.disabled = context.now;
  if (in.tags)
    for (const aws::Tag& each : *in.tags) rule.tags[*each.key] = *each.value;
  const auto kept = rules.put(context.region, *in.rule_name, std::move(rule));
  if (!kept && kept.error().kind == Kind::invalid)
    return invalid_parameter_value(kept.error().message);
  if (!kept && kept.error().kind == Kind::exhausted)
    return Failure{400, "LimitExceededException", kept.error().message};
  if (!kept) return kept.error();
  return aws::PutInsightRuleOutput{};
}

Outcome<aws::DescribeInsightRulesOutput> describe_rules(InsightRules& rules, const Services&,
                                                        const Context& context,
                                                        const aws::DescribeInsightRulesInput& in) {
  std::string after;
  if (in.next_token) {
    auto name = from_base64(*in.next_token);
    if (!name) return Failure{400, "InvalidNextToken", "The next token specified is invalid."};
    after = *std::move(name);
  }
  aws::DescribeInsightRulesOutput out;
  out.insight_rules.emplace();
  const auto limit = size_t(in.max_results.value_or(kRulesDefault));
  for (const auto& [name, rule] : TRY(rules.list(context.region))) {
    if (name <= after) continue;
    if (out.insight_rules->size() == limit) {
      out.next_token = to_base64(*out.insight_rules->back().name);
      break;
    }
    out.insight_rules->push_back({.name = name,
                                  .state = rule.disabled ? kDisabled : kEnabled,
                                  .schema = kSchema,
                                  .definition = rule.definition,
                                  .managed_rule = false});
  }
  return out;
}

// Calls `step` for each name, and lists the unknown names.
template <class Output, class Step>
Outcome<Output> each_rule(const std::vector<std::string>& names, const Step& step) {
  Output out;
  out.failures.emplace();
  for (const std::string& name : names) {
    const auto done = step(name);
    if (!done && done.error().kind != Kind::not_found) return done.error();
    if (!done)
      out.failures->push_back({.failure_resource = name,
                               .exception_type = "ResourceNotFoundException",
                               .failure_code = "404",
                               .failure_description = "The rule does not exist."});
  }
  return out;
}

Outcome<aws::DeleteInsightRulesOutput> remove_rules(InsightRules& rules, const Services&,
                                                    const Context& context,
                                                    const aws::DeleteInsightRulesInput& in) {
  return each_rule<aws::DeleteInsightRulesOutput>(
      *in.rule_names, [&](const std::string& name) { return rules.remove(context.region, name); });
}

Outcome<aws::EnableInsightRulesOutput> enable_rules(InsightRules& rules, const Services&,
                                                    const Context& context,
                                                    const aws::EnableInsightRulesInput& in) {
  return each_rule<aws::EnableInsightRulesOutput>(*in.rule_names, [&](const std::string& name) {
    return rules.change(context.region, name, [](InsightRule& rule) -> Result<void> {
      rule.disabled.reset();
      return ok();
    });
  });
}

Outcome<aws::DisableInsightRulesOutput> disable_rules(InsightRules& rules, const Services&,
                                                      const Context& context,
                                                      const aws::DisableInsightRulesInput& in) {
  return each_rule<aws::DisableInsightRulesOutput>(*in.rule_names, [&](const std::string& name) {
    return rules.change(context.region, name, [&](InsightRule& rule) -> Result<void> {
      if (!rule.disabled) rule.disabled = context.now;
      return ok();
    });
  });
}

// -- reports

aws::InsightRuleMetricDatapoint datapoint_of(Instant at, const insights::ContributorPeriod& period,
                                             const std::vector<std::string>& metrics) {
  aws::InsightRuleMetricDatapoint out{.timestamp = at};
  for (const std::string& metric : metrics) {
    if (metric == "UniqueContributors") out.unique_contributors = double(period.contributors);
    if (metric == "MaxContributorValue") out.max_contributor_value = period.greatest;
    if (metric == "SampleCount") out.sample_count = period.samples;
    if (metric == "Sum") out.sum = period.sum;
    if (metric == "Minimum") out.minimum = period.minimum;
    if (metric == "Maximum") out.maximum = period.maximum;
    if (metric == "Average") out.average = period.sum / period.samples;
  }
  return out;
}

std::optional<Failure> fault_of(const aws::GetInsightRuleReportInput& in, int64_t contributors,
                                const std::vector<std::string>& metrics) {
  if (*in.end_time <= *in.start_time)
    return invalid_parameter_value("The parameter StartTime must be less than EndTime.");
  if (*in.period % 60 != 0 || *in.period > 86'400)
    return invalid_parameter_value(
        "The parameter Period must be a multiple of 60 of at most 86400.");
  if (contributors < 1 || contributors > kContributorsMax)
    return invalid_parameter_value("The parameter MaxContributorCount must be between 1 and 100.");
  for (const std::string& metric : metrics)
    if (std::ranges::find(kMetrics, metric) == std::end(kMetrics))
      return invalid_parameter_value("The parameter Metrics has an unknown metric: " +
                                     shorten(metric, 100));
  const std::string order = in.order_by.value_or("Sum");
  if (order != "Sum" && order != "Maximum")
    return invalid_parameter_value("The parameter OrderBy must be Sum or Maximum.");
  return {};
}

Outcome<aws::GetInsightRuleReportOutput> report_of_rule(InsightRules& rules,
                                                        const Authorizer& authorizer,
                                                        const Context& context,
                                                        const aws::GetInsightRuleReportInput& in) {
  const int64_t contributors = in.max_contributor_count.value_or(kContributorsDefault);
  const auto metrics = in.metrics.value_or(std::vector<std::string>{});
  if (auto fault = fault_of(in, contributors, metrics)) return *std::move(fault);
  const auto stored = rules.find(context.region, *in.rule_name);
  if (!stored && stored.error().kind == Kind::not_found)
    return Failure{404, "ResourceNotFoundException", "The rule does not exist."};
  if (!stored) return stored.error();
  const auto rule = TRY(insights::ContributorRule::parse(stored->definition));
  insights::ContributorQuery query{.region = context.region,
                                   .from = *in.start_time,
                                   .to = *in.end_time,
                                   .period = *in.period * 1s,
                                   .contributors_max = size_t(contributors),
                                   .by_maximum = in.order_by.value_or("Sum") == "Maximum"};
  query.may_read = [&](const std::string& group) {
    return !authorizer.check(context, shapes::logs::kService, "logs:StartQuery",
                             "arn:aws:logs:" + context.region + ":" + context.principal.account +
                                 ":log-group:" + group + ":log-stream:");
  };
  if (stored->disabled) query.to = std::max(query.from, std::min(query.to, *stored->disabled));
  auto counted = rules.report(rule, query);
  if (!counted && counted.error().is(insights::InsightFault::busy))
    return throttled(*aws::GetInsightRuleReport::shape().service);
  if (!counted && counted.error().kind == Kind::exhausted)
    return invalid_parameter_value(counted.error().message);
  const auto found = TRY(std::move(counted));
  aws::GetInsightRuleReportOutput out{
      .key_labels = rule.key_labels(),
      .aggregation_statistic = rule.counts() ? "SampleCount" : "Sum",
      .aggregate_value = found.total,
      .approximate_unique_count = int64_t(found.contributors)};
  out.contributors.emplace();
  for (const auto& each : found.top) {
    aws::InsightRuleContributor shown{.keys = each.keys, .approximate_aggregate_value = each.total};
    shown.datapoints.emplace();
    for (const auto& [at, value] : each.periods)
      shown.datapoints->push_back({.timestamp = at, .approximate_value = value});
    out.contributors->push_back(std::move(shown));
  }
  out.metric_datapoints.emplace();
  if (!metrics.empty())
    for (const auto& [at, period] : found.periods)
      out.metric_datapoints->push_back(datapoint_of(at, period, metrics));
  return out;
}

}  // namespace

void add_insight_rule_operations(OperationTable& table, const Settings& settings,
                                 const Services& services) {
  const auto with = [&services](auto function) {
    return [&services, function](const Context& context,
                                 const auto& in) -> decltype(function(services.queries->rules(),
                                                                      services, context, in)) {
      if (!services.queries) return unavailable(kNoRules);
      return function(services.queries->rules(), services, context, in);
    };
  };
  table.add<aws::PutInsightRule>(with(put_rule));
  table.add<aws::DescribeInsightRules>(with(describe_rules));
  table.add<aws::DeleteInsightRules>(with(remove_rules));
  table.add<aws::EnableInsightRules>(with(enable_rules));
  table.add<aws::DisableInsightRules>(with(disable_rules));
  const auto authorizer = std::make_shared<const Authorizer>(settings, services);
  table.add<aws::GetInsightRuleReport>(
      [&services, authorizer](
          const Context& context,
          const aws::GetInsightRuleReportInput& in) -> Outcome<aws::GetInsightRuleReportOutput> {
        if (!services.queries) return unavailable(kNoRules);
        return report_of_rule(services.queries->rules(), *authorizer, context, in);
      });
}

}  // namespace trainyard::api::cloudwatch
