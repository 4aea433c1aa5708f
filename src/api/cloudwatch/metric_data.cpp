// Implements GetMetricData: statistics of metrics, and expressions over them.
#include "shapes/cloudwatch.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "cloudwatch/common.hpp"
#include "cloudwatch/families.hpp"
#include "cloudwatch/queries.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

constexpr int64_t kDatapointsMax = 100'800;  // in one response, as on AWS

struct Answers {
  std::vector<aws::MetricDataResult> results;
  std::optional<std::string> next_token;
};

// Cuts a page out of the results, from a datapoint on. A result that continues on the next page is
// partial. The token is the number of datapoints before the page.
Answers page_of(std::vector<aws::MetricDataResult> all, size_t skip, size_t count_max) {
  Answers out;
  size_t before = 0, used = 0;
  for (auto& each : all) {
    const size_t size = each.values->size();
    const size_t first = skip > before ? std::min(skip - before, size) : 0;
    before += size;
    // Earlier pages have the whole result.
    if (skip > 0 && first == size && before <= skip) continue;
    const size_t taken = std::min(size - first, count_max - used);
    used += taken;
    const auto begin = long(first), end = long(first + taken);
    each.values = std::vector<double>(each.values->begin() + begin, each.values->begin() + end);
    each.timestamps =
        std::vector<Instant>(each.timestamps->begin() + begin, each.timestamps->begin() + end);
    const bool whole = first + taken == size;
    if (!whole) each.status_code = "PartialData";
    out.results.push_back(std::move(each));
    if (whole) continue;
    out.next_token = std::to_string(skip + used);
    break;
  }
  return out;
}

Outcome<size_t> place_in(const aws::GetMetricDataInput& in) {
  if (!in.next_token) return size_t{0};
  const auto place = parse_int(*in.next_token);
  if (!place || *place < 0) return Failure{400, "InvalidNextToken", "Invalid next token"};
  return size_t(*place);
}

aws::MetricDataResult result_of(const metric_math::Series& series, const std::string& id,
                                bool ascending) {
  aws::MetricDataResult result{.id = id, .label = series.label, .status_code = "Complete"};
  result.timestamps.emplace();
  result.values.emplace();
  for (const auto& point : series.points) {
    result.timestamps->push_back(point.at);
    result.values->push_back(point.value);
  }
  if (!ascending) {
    std::ranges::reverse(*result.timestamps);
    std::ranges::reverse(*result.values);
  }
  return result;
}

Outcome<metric_math::QueryTime> time_of(const Context& context, const aws::GetMetricDataInput& in,
                                        const std::vector<metric_math::Query>& queries) {
  const Instant from = to_seconds_only(*in.start_time), to = to_seconds_only(*in.end_time);
  if (from == to)
    return validation_error("The parameter StartTime must not equal parameter EndTime.");
  if (from > to) return validation_error("The parameter EndTime must be greater than StartTime.");
  Duration shortest = 60s;
  for (const auto& each : queries)
    if (each.metric) shortest = std::min(shortest, each.metric->period);
  return metric_math::QueryTime{metric_math::first_period(from, shortest, context.now), to};
}

Outcome<aws::GetMetricDataOutput> get(observe::Metrics& metrics, const Context& context,
                                      const aws::GetMetricDataInput& in) {
  if (in.metric_data_queries->empty())
    return validation_error("The parameter MetricDataQueries is required.\n");
  const auto queries = TRY(to_queries(context, *in.metric_data_queries, "MetricDataQueries"));
  const auto time = TRY(time_of(context, in, queries));
  const int64_t limit = in.max_datapoints.value_or(kDatapointsMax);
  if (limit < 1 || limit > kDatapointsMax)
    return validation_error("The parameter MaxDatapoints must be between 1 and 100800.");
  const size_t skip = TRY(place_in(in));
  std::vector<std::string> wanted;
  for (const auto& each : *in.metric_data_queries)
    if (each.return_data.value_or(true)) wanted.push_back(*each.id);
  const auto evaluated = metric_math::evaluate(metrics, queries, wanted, time);
  if (!evaluated &&
      (evaluated.error().kind == Kind::invalid || evaluated.error().kind == Kind::exhausted))
    return validation_error(evaluated.error().message);
  if (!evaluated) return evaluated.error();
  const bool ascending = in.scan_by.value_or("") == "TimestampAscending";
  std::vector<aws::MetricDataResult> results;
  for (const std::string& id : wanted)
    for (const auto& series : evaluated->at(id))
      results.push_back(result_of(series, id, ascending));
  auto page = page_of(std::move(results), skip, size_t(limit));
  aws::GetMetricDataOutput out;
  out.metric_data_results = std::move(page.results);
  out.next_token = std::move(page.next_token);
  out.messages.emplace();
  return out;
}

}  // namespace

void add_metric_data_operations(OperationTable& table, const Services& services) {
  observe::Metrics& metrics = services.metrics;
  table.add<aws::GetMetricData>(
      [&metrics](const Context& context, const auto& in) { return get(metrics, context, in); });
}

}  // namespace trainyard::api::cloudwatch
