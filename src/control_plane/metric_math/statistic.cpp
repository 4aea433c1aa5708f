#include "metric_math/statistic.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"

namespace trainyard::metric_math {
namespace {

constexpr std::pair<std::string_view, StatisticKind> kPlain[] = {
    {"Average", StatisticKind::average},
    {"Sum", StatisticKind::sum},
    {"Minimum", StatisticKind::minimum},
    {"Maximum", StatisticKind::maximum},
    {"SampleCount", StatisticKind::count}};
constexpr std::pair<std::string_view, StatisticKind> kBounded[] = {
    {"p", StatisticKind::percentile},       {"tm", StatisticKind::trimmed_mean},
    {"wm", StatisticKind::winsorized_mean}, {"tc", StatisticKind::trimmed_count},
    {"ts", StatisticKind::trimmed_sum},     {"pr", StatisticKind::percentile_rank}};

Error unknown(std::string_view text) {
  return invalid("unknown statistic '" + shorten(text, 60) + "'");
}

// Reads one bound: "", "10%" or "100". Sets `percent` to whether the bound is in percent.
Result<std::optional<double>> parse_bound(std::string_view text, std::optional<bool>& percent) {
  text = trim(text);
  if (text.empty()) return std::optional<double>();
  const bool in_percent = text.ends_with('%');
  if (in_percent) text.remove_suffix(1);
  if (percent && *percent != in_percent)
    return invalid("one bound is in percent, the other is not");
  percent = in_percent;
  const double number = TRY(parse_double(text));
  if (!std::isfinite(number) || (in_percent && (number < 0 || number > 100)))
    return invalid("a bound is out of range");
  return std::optional(number);
}

Result<Statistic> parse_bounds(StatisticKind kind, std::string_view bounds) {
  const size_t colon = bounds.find(':');
  if (colon == std::string_view::npos) return invalid("the bounds have no colon");
  std::optional<bool> percent;
  Statistic out{.kind = kind};
  out.lower = TRY(parse_bound(bounds.substr(0, colon), percent));
  out.upper = TRY(parse_bound(bounds.substr(colon + 1), percent));
  if (!percent) return invalid("both bounds are missing");
  out.in_percent = *percent;
  if (out.lower && out.upper && *out.lower >= *out.upper)
    return invalid("the lower bound is not below the upper bound");
  if (kind == StatisticKind::percentile_rank && out.in_percent)
    return invalid("a percentile rank has values as bounds");
  return out;
}

// Returns the part of a sample that lies between two ranks, in samples.
double overlap(double begin, double end, double from, double to) {
  return std::max(0.0, std::min(end, to) - std::max(begin, from));
}

struct Totals {
  double count = 0, sum = 0;
};

// Requires: samples are sorted by value.
Totals within(const Statistic& statistic, const std::vector<observe::Sample>& samples,
              double total) {
  Totals out;
  const double from = statistic.lower && statistic.in_percent ? total * *statistic.lower / 100 : 0;
  const double to =
      statistic.upper && statistic.in_percent ? total * *statistic.upper / 100 : total;
  double rank = 0;
  for (const auto& each : samples) {
    double count = each.count;
    if (statistic.in_percent)
      count = overlap(rank, rank + each.count, from, to);
    else if ((statistic.lower && each.minimum < *statistic.lower) ||
             (statistic.upper && each.minimum > *statistic.upper))
      count = 0;
    rank += each.count;
    out.count += count;
    out.sum += count * each.minimum;
  }
  return out;
}

// Requires: samples are sorted by value, and not empty.
double percentile(const std::vector<observe::Sample>& samples, double total, double percent) {
  const double rank = total * percent / 100;
  double below = 0;
  for (const auto& each : samples) {
    below += each.count;
    // The tolerance is for counts that have no exact binary representation.
    if (below >= rank * (1 - 1e-12)) return each.minimum;
  }
  return samples.back().minimum;
}

double winsorized(const Statistic& statistic, const std::vector<observe::Sample>& samples,
                  double total) {
  const auto bound = [&](const std::optional<double>& of, double otherwise) {
    if (!of) return otherwise;
    return statistic.in_percent ? percentile(samples, total, *of) : *of;
  };
  const double low = bound(statistic.lower, samples.front().minimum);
  const double high = bound(statistic.upper, samples.back().minimum);
  double sum = 0;
  for (const auto& each : samples)
    sum += each.count * std::min(std::max(each.minimum, low), std::max(low, high));
  return sum / total;
}

}  // namespace

Result<Statistic> parse_statistic(std::string_view text) {
  for (const auto& [name, kind] : kPlain)
    if (text == name) return Statistic{.kind = kind};
  const std::string lower = to_lower(text);
  if (lower == "iqm")
    return Statistic{.kind = StatisticKind::trimmed_mean, .lower = 25.0, .upper = 75.0};
  for (const auto& [name, kind] : kBounded) {
    if (!lower.starts_with(name)) continue;
    std::string_view rest = std::string_view(lower).substr(name.size());
    if (rest.starts_with('(') && rest.ends_with(')') && kind != StatisticKind::percentile) {
      auto bounds = parse_bounds(kind, rest.substr(1, rest.size() - 2));
      if (!bounds) return unknown(text);
      return bounds;
    }
    if (kind == StatisticKind::percentile_rank || rest.empty() || rest.size() > 20 ||
        rest.find_first_not_of("0123456789.") != std::string_view::npos)
      continue;
    const auto number = parse_double(rest);
    if (!number || !(*number >= 0 && *number <= 100)) continue;
    return Statistic{.kind = kind, .upper = *number};
  }
  return unknown(text);
}

bool needs_samples(const Statistic& statistic) {
  return statistic.kind >= StatisticKind::percentile;
}

double value_of(const Statistic& statistic, const observe::Datapoint& point) {
  switch (statistic.kind) {
    case StatisticKind::sum:
      return point.sum;
    case StatisticKind::minimum:
      return point.minimum;
    case StatisticKind::maximum:
      return point.maximum;
    case StatisticKind::count:
      return point.count;
    default:
      CHECK(statistic.kind == StatisticKind::average, "the statistic needs no samples");
      return point.average();
  }
}

std::optional<double> value_of(const Statistic& statistic, std::vector<observe::Sample> samples) {
  double total = 0;
  for (const auto& each : samples) {
    if (each.minimum != each.maximum || !(each.count > 0)) return {};
    total += each.count;
  }
  if (samples.empty() || !std::isfinite(total)) return {};
  std::ranges::sort(samples, {}, &observe::Sample::minimum);
  const Totals totals = within(statistic, samples, total);
  switch (statistic.kind) {
    case StatisticKind::percentile:
      return percentile(samples, total, *statistic.upper);
    case StatisticKind::trimmed_mean:
      if (totals.count <= 0) return {};
      return totals.sum / totals.count;
    case StatisticKind::winsorized_mean:
      return winsorized(statistic, samples, total);
    case StatisticKind::trimmed_count:
      return totals.count;
    case StatisticKind::trimmed_sum:
      return totals.sum;
    case StatisticKind::percentile_rank:
      return totals.count / total * 100;
    case StatisticKind::average:
    case StatisticKind::sum:
    case StatisticKind::minimum:
    case StatisticKind::maximum:
    case StatisticKind::count:
      break;
  }
  observe::Datapoint point{
      .count = total, .minimum = samples.front().minimum, .maximum = samples.back().minimum};
  for (const auto& each : samples) point.sum += each.sum;
  return value_of(statistic, point);
}

}  // namespace trainyard::metric_math
