#include "metric_math/query.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/check.hpp"

namespace trainyard::metric_math {
namespace {

Instant round_down(Instant at, Duration step) {
  const auto since = at.time_since_epoch();
  return at - (since % step + step) % step;
}

// Merges the datapoints of one period that differ only in their unit.
std::vector<observe::Datapoint> merge_units(const std::vector<observe::Datapoint>& found) {
  std::vector<observe::Datapoint> joined;
  for (const auto& each : found) {
    if (joined.empty() || joined.back().at != each.at) {
      joined.push_back(each);
      continue;
    }
    auto& last = joined.back();
    last.count += each.count;
    last.sum += each.sum;
    last.minimum = std::min(last.minimum, each.minimum);
    last.maximum = std::max(last.maximum, each.maximum);
  }
  return joined;
}

std::vector<Point> points_of(const Statistic& statistic, std::vector<observe::Sample> samples,
                             Duration period, Instant from) {
  std::vector<Point> points;
  std::map<Instant, std::vector<observe::Sample>> by_period;
  for (auto& each : samples)
    by_period[from + (each.at - from) / period * period].push_back(std::move(each));
  for (auto& [at, all] : by_period)
    if (const auto value = value_of(statistic, std::move(all))) points.push_back({at, *value});
  return points;
}

// An Evaluation computes queries one by one, and stores their values.
class Evaluation {
 public:
  Evaluation(observe::Metrics& metrics, const std::vector<Query>& queries, QueryTime time)
      : metrics_(metrics) {
    for (const Query& each : queries) {
      by_id_[each.id] = &each;
      if (!each.metric) continue;
      scope_.metric_ids.push_back(each.id);
      finest_ = std::min(finest_.value_or(each.metric->period), each.metric->period);
    }
    scope_.from = time.from;
    scope_.to = time.to;
    scope_.value_of = [this](const std::string& id) { return value_of(id); };
  }

  // Requires: the queries on which it depends were computed before.
  Result<void> compute(const std::string& id) {
    const Query& query = *by_id_.at(id);
    auto computed = compute(query);
    if (!computed && !query.metric)
      return std::move(computed).error().in("Error in expression '" + id + "'");
    Value value = TRY(std::move(computed));
    for (Series& each : value.series) {
      points_ += each.points.size();
      const bool one_of_several = value.holds == Value::Holds::several && !each.label.empty();
      if (!query.label.empty())
        each.label = query.label;
      else
        each.label = one_of_several ? id + " " + each.label : id;
    }
    if (points_ > kResultPointsMax) return too_many(kResultPointsMax);
    values_.emplace(id, std::move(value));
    return ok();
  }

  Result<std::vector<Series>> series_of(const std::string& id) {
    const auto found = values_.find(id);
    if (found == values_.end()) return invalid("Undefined id '" + id + "'");
    const Value& value = found->second;
    if (value.holds != Value::Holds::number) return value.series;
    const Query& query = *by_id_.at(id);
    Series constant{query.label.empty() ? id : query.label, finest_.value_or(60s), {}};
    if (size_t((scope_.to - scope_.from) / constant.period) > kPointsMax)
      return too_many(kPointsMax);
    if (std::isfinite(value.number))
      for (Instant at = scope_.from; at < scope_.to; at += constant.period)
        constant.points.push_back({at, value.number});
    return std::vector<Series>{std::move(constant)};
  }

 private:
  static Error too_many(size_t points_max) {
    return exhausted("the queries return more than " + std::to_string(points_max) +
                     " points; shorten the time range or lengthen the period");
  }

  Result<Value> value_of(const std::string& id) {
    const auto known = values_.find(id);
    if (known == values_.end()) return invalid("Undefined id '" + id + "'");
    return known->second;
  }

  Result<Value> compute(const Query& query) {
    if (!query.metric) {
      const auto expression = TRY(Expression::parse(query.expression));
      return expression.evaluate(scope_);
    }
    Series series = TRY(read_series(metrics_, *query.metric, {scope_.from, scope_.to}));
    metric_points_ += series.points.size();
    if (metric_points_ > kPointsMax) return too_many(kPointsMax);
    return Value::of(std::move(series));
  }

  observe::Metrics& metrics_;
  std::map<std::string, const Query*> by_id_;
  std::optional<Duration> finest_;
  std::map<std::string, Value> values_;
  size_t points_ = 0, metric_points_ = 0;
  Scope scope_;
};

// Returns the ids on which a query depends.
Result<std::set<std::string>> dependencies_of(const Query& query,
                                              const std::set<std::string>& metrics) {
  if (query.metric) return std::set<std::string>();
  const auto expression = TRY(Expression::parse(query.expression));
  std::set<std::string> ids = expression.ids();
  if (expression.uses_all_metrics()) ids.insert(metrics.begin(), metrics.end());
  return ids;
}

// Returns the ids in an order in which each query comes after those on which it depends.
Result<std::vector<std::string>> evaluation_order(const std::vector<Query>& queries) {
  std::vector<std::string> order;
  std::set<std::string> metrics, all;
  for (const Query& each : queries) {
    if (!all.insert(each.id).second) return invalid("The id '" + each.id + "' is not unique");
    if (each.metric) metrics.insert(each.id);
  }
  std::map<std::string, std::set<std::string>> open;  // the unresolved dependencies of each query
  for (const Query& each : queries) {
    auto ids = dependencies_of(each, metrics).in("Error in expression '" + each.id + "'");
    if (!ids) return std::move(ids).error();
    for (const std::string& id : *ids)
      if (!all.contains(id))
        return invalid("Error in expression '" + each.id + "': Undefined id '" + id + "'");
    open[each.id] = std::move(*ids);
  }
  // Queries without unresolved dependencies are removed one by one. If none remains that can be
  // removed, the rest form a cycle.
  while (!open.empty()) {
    const auto ready =
        std::ranges::find_if(open, [](const auto& each) { return each.second.empty(); });
    if (ready == open.end())
      return invalid("Error in expression '" + open.begin()->first + "': It depends on itself");
    const std::string id = ready->first;
    order.push_back(id);
    open.erase(ready);
    for (auto& [other, ids] : open) ids.erase(id);
  }
  return order;
}

}  // namespace

Instant first_period(Instant from, Duration period, Instant now) {
  const Duration age = now - from;
  if (period < 60s) return round_down(from, period);
  return round_down(from, age > 63 * 24h ? Duration(1h) : age > 15 * 24h ? 5min : 1min);
}

Result<void> check_queries(const std::vector<Query>& queries) {
  TRY(evaluation_order(queries));
  return ok();
}

Result<Series> read_series(observe::Metrics& metrics, const MetricSelection& of, QueryTime time) {
  const observe::StatisticsQuery query{
      .key = of.key, .from = time.from, .to = time.to, .period = of.period, .unit = of.unit};
  Series series{"", of.period, {}};
  if (of.period <= 0ms) return invalid("invalid period: it must be positive");
  if (needs_samples(of.statistic)) {
    series.points =
        points_of(of.statistic, TRY(metrics.samples(query, kSamplesMax)), of.period, time.from);
    return series;
  }
  for (const auto& each : merge_units(TRY(metrics.statistics(query))))
    series.points.push_back({each.at, value_of(of.statistic, each)});
  return series;
}

Result<std::map<std::string, std::vector<Series>>> evaluate(observe::Metrics& metrics,
                                                            const std::vector<Query>& queries,
                                                            const std::vector<std::string>& wanted,
                                                            QueryTime time) {
  Evaluation evaluation(metrics, queries, time);
  for (const std::string& id : TRY(evaluation_order(queries))) TRY(evaluation.compute(id));
  std::map<std::string, std::vector<Series>> out;
  for (const std::string& id : wanted) out[id] = TRY(evaluation.series_of(id));
  return out;
}

}  // namespace trainyard::metric_math
