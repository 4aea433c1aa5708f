#include "insights/aggregates.hpp"

#include <algorithm>
#include <cmath>

#include "base/fnv.hpp"

namespace trainyard::insights {
namespace {

constexpr size_t kDistinctBytes = 40;  // memory of one entry of the hash set

// Adds by Kahan's compensated summation, whose error does not grow with the count.
void add_exactly(double& sum, double& compensation, double number) {
  const double corrected = number - compensation;
  const double next = sum + corrected;
  compensation = (next - sum) - corrected;
  sum = next;
}

}  // namespace

void Accumulator::keep(bool better, const Value& value, double at) {
  if (!kept_.nothing() && !better) return;
  kept_ = value;
  kept_at_ = at;
}

void Accumulator::add_number(AggregateKind kind, double number) {
  ++count_;
  if (kind == AggregateKind::deviation) {
    const double before = number - mean_;
    mean_ += before / double(count_);
    squares_ += before * (number - mean_);
  } else {
    add_exactly(sum_, compensation_, number);
  }
}

size_t Accumulator::add(const Aggregate& aggregate, const Value& value, double at) {
  const size_t before = kept_.bytes();
  switch (aggregate.kind) {
    case AggregateKind::count:
      if (!aggregate.of || !value.nothing()) ++count_;
      return 0;
    case AggregateKind::count_distinct:
      if (value.nothing()) return 0;
      return distinct_.insert(fnv1a(value.text())).second ? kDistinctBytes : 0;
    case AggregateKind::sum:
    case AggregateKind::average:
    case AggregateKind::deviation:
      if (const auto number = value.number()) add_number(aggregate.kind, *number);
      return 0;
    case AggregateKind::percentile:
      if (const auto number = value.number()) {
        numbers_.push_back(*number);
        return 2 * sizeof *number;  // a vector grows by doubling
      }
      return 0;
    case AggregateKind::minimum:
      if (value.number()) keep(order_of(value, kept_) < 0, value, at);
      break;
    case AggregateKind::maximum:
      if (value.number()) keep(order_of(value, kept_) > 0, value, at);
      break;
    case AggregateKind::earliest:
      if (!value.nothing()) keep(at < kept_at_, value, at);
      break;
    case AggregateKind::latest:
      if (!value.nothing()) keep(at >= kept_at_, value, at);
      break;
    case AggregateKind::sorts_first:
      if (!value.nothing()) keep(order_of(value, kept_) < 0, value, at);
      break;
    case AggregateKind::sorts_last:
      if (!value.nothing()) keep(order_of(value, kept_) > 0, value, at);
      break;
  }
  return kept_.bytes() > before ? kept_.bytes() - before : 0;
}

Value Accumulator::result(const Aggregate& aggregate) {
  switch (aggregate.kind) {
    case AggregateKind::count:
      return Value::of_number(double(count_));
    case AggregateKind::count_distinct:
      return Value::of_number(double(distinct_.size()));
    case AggregateKind::sum:
      return count_ ? Value::of_number(sum_) : Value();
    case AggregateKind::average:
      return count_ ? Value::of_number(sum_ / double(count_)) : Value();
    case AggregateKind::deviation:
      return count_ ? Value::of_number(std::sqrt(squares_ / double(count_))) : Value();
    case AggregateKind::percentile: {
      if (numbers_.empty()) return {};
      // Interpolates linearly between the two nearest ranks.
      const double rank = aggregate.percentile / 100 * double(numbers_.size() - 1);
      const auto below = numbers_.begin() + ptrdiff_t(std::floor(rank));
      std::nth_element(numbers_.begin(), below, numbers_.end());
      const double low = *below;
      if (below + 1 == numbers_.end() || rank == std::floor(rank)) return Value::of_number(low);
      const double high = *std::min_element(below + 1, numbers_.end());
      return Value::of_number(low + (high - low) * (rank - std::floor(rank)));
    }
    default:
      return kept_;
  }
}

}  // namespace trainyard::insights
