#include "cloudwatch/queries.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "cloudwatch/common.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

bool is_id(std::string_view id) {
  return !id.empty() && std::islower(static_cast<unsigned char>(id[0])) &&
         std::ranges::all_of(id,
                             [](unsigned char each) { return std::isalnum(each) || each == '_'; });
}

std::optional<Failure> check_query(const Context& context, const aws::MetricDataQuery& query,
                                   const std::string& name) {
  if (!is_id(*query.id))
    return validation_error("The value " + shorten(*query.id, 100) + " for parameter " + name +
                            ".Id is not matching the expected pattern ^[a-z][a-zA-Z0-9_]*$.");
  if (!query.metric_stat && !query.expression)
    return validation_error("The parameter " + name + ".MetricStat is required.\n");
  if (query.metric_stat && query.expression)
    return validation_error("The parameters " + name + ".Expression and " + name +
                            ".MetricStat are mutually exclusive and you have specified both.");
  if (query.account_id && *query.account_id != context.principal.account)
    return validation_error("The parameter " + name +
                            ".AccountId must be this account: metrics of other accounts are not "
                            "linked.");
  if (query.period && !is_period(*query.period))
    return validation_error("The parameter " + name +
                            ".Period must be 1, 5, 10, 20, 30 or a multiple of 60.");
  return {};
}

Outcome<metric_math::MetricSelection> to_selection(const Context& context,
                                                   const aws::MetricStat& stat,
                                                   const std::string& name) {
  const aws::Metric& metric = *stat.metric;
  if (!metric.namespace_ || !metric.metric_name)
    return validation_error("The parameter " + name + ".MetricStat.Metric." +
                            (metric.namespace_ ? "MetricName" : "Namespace") + " is required.\n");
  const auto statistic = metric_math::parse_statistic(*stat.stat);
  if (!statistic)
    return validation_error("The value " + shorten(*stat.stat, 100) + " for parameter " + name +
                            ".MetricStat.Stat is not supported.");
  if (!is_period(*stat.period))
    return validation_error("The parameter " + name +
                            ".MetricStat.Period must be 1, 5, 10, 20, 30 or a multiple of 60.");
  return metric_math::MetricSelection{
      .key = {context.region, *metric.namespace_, *metric.metric_name, to_map(metric.dimensions)},
      .statistic = *statistic,
      .period = Duration(*stat.period * 1000),
      .unit = stat.unit.value_or("")};
}

}  // namespace

Outcome<std::vector<metric_math::Query>> to_queries(
    const Context& context, const std::vector<aws::MetricDataQuery>& queries,
    const std::string& name) {
  if (queries.size() > metric_math::kQueriesMax)
    return validation_error("The collection " + name + " must not have a size greater than " +
                            std::to_string(metric_math::kQueriesMax) + ".");
  std::vector<metric_math::Query> out;
  for (size_t i = 0; i < queries.size(); ++i) {
    const aws::MetricDataQuery& each = queries[i];
    const std::string place = name + ".member." + std::to_string(i + 1);
    if (auto failure = check_query(context, each, place)) return *failure;
    metric_math::Query query{.id = *each.id,
                             .expression = each.expression.value_or(""),
                             .label = each.label.value_or("")};
    if (each.metric_stat) {
      query.metric = TRY(to_selection(context, *each.metric_stat, place));
      if (query.label.empty()) query.label = query.metric->key.name + " " + *each.metric_stat->stat;
    }
    out.push_back(std::move(query));
  }
  if (const auto checked = metric_math::check_queries(out); !checked)
    return validation_error(checked.error().message);
  return out;
}

}  // namespace trainyard::api::cloudwatch
