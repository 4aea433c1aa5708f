// Implements PutMetricData, GetMetricStatistics and ListMetrics. Checks the constraints that the
// model lacks, with AWS's texts.
#include "shapes/cloudwatch.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "cloudwatch/common.hpp"
#include "cloudwatch/families.hpp"
#include "metric_math/query.hpp"
#include "protocol/values.hpp"

namespace trainyard::api::cloudwatch {
namespace {

namespace aws = shapes::cloudwatch;

constexpr size_t kDataMax = 1000;        // metrics in one PutMetricData
constexpr size_t kDatumValuesMax = 150;  // of one metric
constexpr Duration kTooOld = 14 * 24h;
constexpr Duration kTooNew = 2h;
constexpr int64_t kPointsMax = 1440;  // in one GetMetricStatistics
constexpr size_t kListMax = 500;      // metrics in one page
const double kValueMax = std::ldexp(1.0, 360);

std::optional<Failure> check_value(const std::string& name, double value) {
  if (std::isfinite(value) && std::abs(value) <= kValueMax) return {};
  if (std::isfinite(value))
    return invalid_parameter_value("The value " + double_text(value) + " for parameter " + name +
                                   " is invalid: it must lie between -2^360 and 2^360.");
  return invalid_parameter_value("The value " + double_text(value) + " for parameter " + name +
                                 " is invalid.");
}

// Checks a datum except for its values. `name`: the datum in error messages, MetricData.member.1.
std::optional<Failure> check_datum(const Context& context, const aws::MetricDatum& datum,
                                   const std::string& name) {
  const bool has_values = datum.values && !datum.values->empty();
  if (int(datum.value.has_value()) + int(datum.statistic_values.has_value()) + int(has_values) >
      1) {
    const std::string second = datum.statistic_values ? ".StatisticValues" : ".Values";
    const std::string first = datum.value ? ".Value" : ".Values";
    std::string text = "The parameters " + name + first + " and " + name + second +
                       " are mutually exclusive and you have specified both.";
    // As on AWS, which has two codes for one text.
    return datum.statistic_values ? invalid_parameter_combination(std::move(text))
                                  : invalid_parameter_value(std::move(text));
  }
  if (!datum.value && !datum.statistic_values && !has_values)
    return missing_parameter("At least one of the parameters " + name + ".Value, " + name +
                             ".Values, " + name + ".StatisticValues must be specified.");
  const Instant at = datum.timestamp.value_or(context.now);
  if (at < context.now - kTooOld)
    return invalid_parameter_value("The parameter " + name +
                                   ".Timestamp must specify a time within the past two weeks.");
  if (at > context.now + kTooNew)
    return invalid_parameter_value(
        "The parameter " + name +
        ".Timestamp must specify a time no more than two hours in the future.");
  if (datum.storage_resolution && *datum.storage_resolution != 1 && *datum.storage_resolution != 60)
    return invalid_parameter_value("The parameter " + name + ".StorageResolution must be 1 or 60.");
  return {};
}

using Samples = std::vector<observe::Sample>;

std::optional<Failure> add_statistics(const aws::StatisticSet& set, const std::string& name,
                                      Samples& samples) {
  for (const auto& [part, value] : {std::pair{"SampleCount", *set.sample_count},
                                    {"Sum", *set.sum},
                                    {"Minimum", *set.minimum},
                                    {"Maximum", *set.maximum}})
    if (auto failure = check_value(name + ".StatisticValues." + part, value)) return failure;
  if (*set.sample_count <= 0)
    return invalid_parameter_value("The parameter " + name +
                                   ".StatisticValues.SampleCount must be greater than 0.");
  if (*set.minimum > *set.maximum)
    return invalid_parameter_value("The parameter " + name +
                                   ".StatisticValues.Minimum must be less than or equal to " +
                                   name + ".StatisticValues.Maximum.");
  samples.push_back({.at = {},
                     .count = *set.sample_count,
                     .sum = *set.sum,
                     .minimum = *set.minimum,
                     .maximum = *set.maximum});
  return {};
}

std::optional<Failure> add_values(const std::vector<double>& values,
                                  const std::optional<std::vector<double>>& counts,
                                  const std::string& name, Samples& samples) {
  if (values.size() > kDatumValuesMax)
    return invalid_parameter_value("The collection " + name +
                                   ".Values must not have a size greater than " +
                                   std::to_string(kDatumValuesMax) + ".");
  if (counts && counts->size() != values.size())
    return invalid_parameter_value("The parameters " + name + ".Values and " + name +
                                   ".Counts must be of the same size.");
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string place = ".member." + std::to_string(i + 1);
    const double count = counts ? (*counts)[i] : 1;
    if (auto failure = check_value(name + ".Values" + place, values[i])) return failure;
    if (auto failure = check_value(name + ".Counts" + place, count)) return failure;
    if (count <= 0)
      return invalid_parameter_value("The parameter " + name + ".Counts" + place +
                                     " must be greater than 0.");
    samples.push_back(
        {.count = count, .sum = values[i] * count, .minimum = values[i], .maximum = values[i]});
  }
  return {};
}

// Appends the samples of one datum. `name`: as for check_datum.
std::optional<Failure> add_datum(const Context& context, const std::string& name_space,
                                 const aws::MetricDatum& datum, const std::string& name,
                                 std::vector<observe::MetricRecord>& records) {
  if (auto failure = check_datum(context, datum, name)) return failure;
  const Instant at = datum.timestamp.value_or(context.now);
  const std::string unit = datum.unit.value_or("None");
  Samples samples;
  if (datum.value) {
    if (auto failure = check_value(name + ".Value", *datum.value)) return failure;
    samples.push_back(observe::sample_of(at, *datum.value, unit));
  } else if (datum.statistic_values) {
    if (auto failure = add_statistics(*datum.statistic_values, name, samples)) return failure;
  } else if (auto failure = add_values(*datum.values, datum.counts, name, samples)) {
    return failure;
  }
  const observe::MetricKey key{context.region, name_space, *datum.metric_name,
                               to_map(datum.dimensions)};
  for (auto& sample : samples) {
    sample.at = at;
    sample.unit = unit;
    records.push_back({key, std::move(sample)});
  }
  return {};
}

Outcome<aws::Nothing> put(observe::Metrics& metrics, const Context& context,
                          const aws::PutMetricDataInput& in) {
  if (in.namespace_->starts_with("AWS/"))
    return invalid_parameter_value("The value AWS/ for parameter Namespace is invalid.");
  std::vector<observe::MetricRecord> records;
  size_t data = 0;
  const auto add = [&](const std::optional<std::vector<aws::MetricDatum>>& list,
                       const std::string& name) -> std::optional<Failure> {
    if (!list) return {};
    data += list->size();
    if (data > kDataMax)
      return invalid_parameter_value("The collection " + name +
                                     " must not have a size greater than " +
                                     std::to_string(kDataMax) + ".");
    for (size_t i = 0; i < list->size(); ++i)
      if (auto failure = add_datum(context, *in.namespace_, (*list)[i],
                                   name + ".member." + std::to_string(i + 1), records))
        return failure;
    return {};
  };
  if (auto failure = add(in.metric_data, "MetricData")) return *failure;
  if (in.entity_metric_data)
    for (size_t i = 0; i < in.entity_metric_data->size(); ++i)
      if (auto failure = add((*in.entity_metric_data)[i].metric_data,
                             "EntityMetricData.member." + std::to_string(i + 1) + ".MetricData"))
        return *failure;
  if (data == 0) return missing_parameter("The parameter MetricData is required.");
  const auto appended = metrics.append(records);
  if (!appended && appended.error().is(observe::MetricFault::too_many_series))
    return Failure{400, "LimitExceeded", appended.error().message};
  if (!appended) return appended.error();
  return aws::Nothing{};
}

// Formats "1,441".
std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

using RequestedStatistics = std::vector<std::pair<std::string, metric_math::Statistic>>;

Outcome<RequestedStatistics> extended_of(const aws::GetMetricStatisticsInput& in) {
  RequestedStatistics wanted;
  for (const std::string& text : in.extended_statistics.value_or(std::vector<std::string>())) {
    const auto statistic = metric_math::parse_statistic(text);
    if (!statistic || !metric_math::needs_samples(*statistic))
      return invalid_parameter_value("The value " + shorten(text, 100) +
                                     " for parameter ExtendedStatistics is not supported.");
    wanted.emplace_back(text, *statistic);
  }
  return wanted;
}

std::optional<Failure> check_statistics(const aws::GetMetricStatisticsInput& in) {
  if ((!in.statistics || in.statistics->empty()) &&
      (!in.extended_statistics || in.extended_statistics->empty()))
    return invalid_parameter_combination("Must specify either Statistics or ExtendedStatistics");
  if (!is_period(*in.period))
    return invalid_parameter_value(
        "The parameter Period must be 1, 5, 10, 20, 30 or a multiple of 60.");
  if (*in.period > 455 * 86400)
    return invalid_parameter_value("The parameter Period is longer than metrics are kept.");
  if (to_seconds_only(*in.start_time) >= to_seconds_only(*in.end_time))
    return invalid_parameter_value(
        "The parameter StartTime must be less than the parameter EndTime.");
  return {};
}

Failure too_many_samples() {
  return invalid_parameter_combination(
      "The metric has too many samples in this time to compute percentiles. You may reduce the "
      "time range.");
}

// Extended statistics, such as percentiles, by time and unit.
using Extended = std::map<std::pair<Instant, std::string>, std::map<std::string, double>>;

Outcome<Extended> extended_statistics(observe::Metrics& metrics, const RequestedStatistics& wanted,
                                      const observe::StatisticsQuery& query) {
  Extended out;
  if (wanted.empty()) return out;
  const auto samples = metrics.samples(query, metric_math::kSamplesMax);
  if (!samples && samples.error().kind == Kind::exhausted) return too_many_samples();
  if (!samples) return samples.error();
  std::map<std::pair<Instant, std::string>, std::vector<observe::Sample>> by_period;
  for (const auto& each : *samples)
    by_period[{query.from + (each.at - query.from) / query.period * query.period, each.unit}]
        .push_back(each);
  for (const auto& [key, of_period] : by_period)
    for (const auto& [text, statistic] : wanted)
      if (const auto value = metric_math::value_of(statistic, of_period)) out[key][text] = *value;
  return out;
}

aws::Datapoint datapoint_of(const observe::Datapoint& each,
                            const std::vector<std::string>& statistics) {
  const auto wanted = [&](std::string_view name) {
    return std::ranges::find(statistics, name) != statistics.end();
  };
  aws::Datapoint point{.timestamp = each.at, .unit = each.unit};
  if (wanted("SampleCount")) point.sample_count = each.count;
  if (wanted("Average")) point.average = each.average();
  if (wanted("Sum")) point.sum = each.sum;
  if (wanted("Minimum")) point.minimum = each.minimum;
  if (wanted("Maximum")) point.maximum = each.maximum;
  return point;
}

Outcome<aws::GetMetricStatisticsOutput> statistics(observe::Metrics& metrics,
                                                   const Context& context,
                                                   const aws::GetMetricStatisticsInput& in) {
  if (auto failure = check_statistics(in)) return *failure;
  const RequestedStatistics wanted = TRY(extended_of(in));
  const Duration period = Duration(*in.period * 1000);
  const Instant from =
      metric_math::first_period(to_seconds_only(*in.start_time), period, context.now);
  const Instant to = to_seconds_only(*in.end_time);
  const int64_t points = (to - from + period - 1ms) / period;
  if (points > kPointsMax)
    return invalid_parameter_combination(
        "You have requested up to " + with_commas(points) +
        " datapoints, which exceeds the limit of 1,440. You may reduce the datapoints "
        "requested by increasing Period, or decreasing the time range.");
  const observe::StatisticsQuery query{
      .key = {context.region, *in.namespace_, *in.metric_name, to_map(in.dimensions)},
      .from = from,
      .to = to,
      .period = period,
      .unit = in.unit.value_or("")};
  const auto found = TRY(metrics.statistics(query));
  const Extended extended = TRY(extended_statistics(metrics, wanted, query));
  aws::GetMetricStatisticsOutput out{.label = *in.metric_name};
  out.datapoints.emplace();
  for (const auto& each : found) {
    auto point = datapoint_of(each, in.statistics.value_or(std::vector<std::string>()));
    if (!wanted.empty()) {
      const auto values = extended.find({each.at, each.unit});
      // As on AWS, a period without the statistic has no datapoint, unless the request has others.
      if (values == extended.end() && (!in.statistics || in.statistics->empty())) continue;
      if (values != extended.end()) point.extended_statistics = values->second;
    }
    out.datapoints->push_back(std::move(point));
  }
  return out;
}

Outcome<aws::ListMetricsOutput> list(observe::Metrics& metrics, const Context& context,
                                     const aws::ListMetricsInput& in) {
  const auto keys =
      TRY(metrics.list(context.region, in.namespace_.value_or(""), in.metric_name.value_or("")));
  size_t at = 0;
  if (in.next_token) {
    const auto place = parse_int(*in.next_token);
    if (!place || *place < 0)
      return invalid_parameter_value("Request parameter NextToken is invalid");
    at = size_t(*place);
  }
  const auto meets = [&](const observe::MetricKey& key) {
    if (!in.dimensions) return true;
    return std::ranges::all_of(*in.dimensions, [&](const aws::DimensionFilter& filter) {
      const auto dimension = key.dimensions.find(*filter.name);
      return dimension != key.dimensions.end() &&
             (!filter.value || dimension->second == *filter.value);
    });
  };
  aws::ListMetricsOutput out;
  out.metrics.emplace();
  for (; at < keys.size(); ++at) {
    const auto& key = keys[at];
    if (!meets(key)) continue;
    if (in.recently_active) {
      const auto last = TRY(metrics.last(key));
      if (!last || last->at < context.now - 3h) continue;
    }
    if (out.metrics->size() == kListMax) {
      out.next_token = std::to_string(at);
      break;
    }
    aws::Metric metric{.namespace_ = key.name_space, .metric_name = key.name};
    metric.dimensions.emplace();
    for (const auto& [name, value] : key.dimensions)
      metric.dimensions->push_back({.name = name, .value = value});
    out.metrics->push_back(std::move(metric));
  }
  return out;
}

}  // namespace

void add_metric_operations(OperationTable& table, const Services& services) {
  observe::Metrics& metrics = services.metrics;
  table.add<aws::PutMetricData>(
      [&metrics](const Context& context, const auto& in) { return put(metrics, context, in); });
  table.add<aws::GetMetricStatistics>([&metrics](const Context& context, const auto& in) {
    return statistics(metrics, context, in);
  });
  table.add<aws::ListMetrics>(
      [&metrics](const Context& context, const auto& in) { return list(metrics, context, in); });
}

}  // namespace trainyard::api::cloudwatch
